"""Chat: read the request, choose a route, relay the answer, record its use."""
