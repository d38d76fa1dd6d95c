"""The OpenAPI document and the reference page drawn from it."""
