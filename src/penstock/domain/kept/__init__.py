"""Kept conversations: responses that later requests continue."""
