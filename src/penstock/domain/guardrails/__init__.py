"""Guardrails: the request as they see it, built-in rules, and findings; no I/O."""
