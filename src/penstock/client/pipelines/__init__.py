"""Pipelines of the client: references between steps, the API calls, and handles of both clients."""
