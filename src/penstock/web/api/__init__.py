"""The public endpoints, one file for each resource."""
