"""The gateway over HTTP: server, pages and the OpenAPI document."""
