"""Connections to vendors, and what goes over them."""
