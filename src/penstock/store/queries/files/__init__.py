"""Rows of files and assets, and the bytes that they take."""
