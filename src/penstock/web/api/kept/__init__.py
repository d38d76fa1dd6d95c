"""Kept responses over HTTP."""
