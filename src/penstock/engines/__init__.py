"""Upstreams that run inside this process, so that the gateway is useful with no vendor's key."""
