"""Queries by concept: plain functions of a connection."""
