"""Queries about run-time settings and sealed secrets."""
