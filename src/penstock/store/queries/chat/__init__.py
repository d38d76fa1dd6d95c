"""Queries of chat."""
