"""The HTTP server: connections, limits, error responses and the access log."""
