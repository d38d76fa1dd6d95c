"""Kept conversations of the Responses API: docs/decisions/0046."""
