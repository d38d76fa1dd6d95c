"""The admin endpoints, one file for each resource."""
