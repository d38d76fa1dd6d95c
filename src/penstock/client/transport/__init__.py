"""How the client's steps go over HTTP: drivers, retries, streams."""
