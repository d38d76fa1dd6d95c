"""HTTP transport of the client: drivers, retries, streams."""
