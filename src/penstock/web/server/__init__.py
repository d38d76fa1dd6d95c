"""The HTTP server: connections, limits, access log."""
