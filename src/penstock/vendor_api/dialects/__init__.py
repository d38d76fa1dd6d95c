"""Dialects of text vendors: Chat Completions, Responses and Messages."""
