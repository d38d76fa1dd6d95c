"""Delivery of events to callers' webhooks."""
