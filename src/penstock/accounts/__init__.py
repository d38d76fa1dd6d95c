"""Accounts and keys: who calls, and what administrators do."""
