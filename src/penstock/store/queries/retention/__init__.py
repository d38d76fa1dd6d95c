"""Removal of old records, by age."""
