"""Fetching of callers' URLs without reaching anything private."""
