"""Rows of files and assets, and the storage that they use."""
