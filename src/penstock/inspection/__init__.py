"""Checks of untrusted files, in confined child processes."""
