"""Accounts and API keys: authentication, administration and corrections of the ledger."""
