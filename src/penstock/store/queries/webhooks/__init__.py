"""Rows of webhooks and their deliveries."""
