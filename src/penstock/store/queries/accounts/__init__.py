"""Rows of accounts, keys and the audit log."""
