"""Writes the files of 3D models."""
