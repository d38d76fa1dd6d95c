"""The gateway over HTTP: everything that knows of requests and responses."""
