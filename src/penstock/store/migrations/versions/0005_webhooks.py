"""Webhooks and their deliveries."""

revision = "0005"
down_revision = "0004"
