"""Pipelines: their requests, the plan of their jobs, and their acceptance."""
