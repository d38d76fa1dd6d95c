"""Pipelines: jobs that take each other's outputs."""
