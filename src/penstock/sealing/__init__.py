"""Secrets at rest: sealed by data keys in the store, which a master key outside the store seals."""
