"""Shares of bounded resources: queues, memory, loop time and webhook slots, divided between accounts."""
