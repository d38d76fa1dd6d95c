"""Rows of the ledger, of balances, limits and usage."""
