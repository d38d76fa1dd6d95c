"""Façades: protocols of other services that lead to our jobs, each as pure functions and the routes that call them."""
