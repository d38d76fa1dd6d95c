"""Guardrails: rules and the operator's hooks inspect a request before it is accepted."""
