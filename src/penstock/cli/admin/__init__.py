"""Commands on the store: accounts, keys, ledger, usage."""
