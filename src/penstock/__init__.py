"""Penstock: one key, one body shape and one bill for 3D, video and chat models."""

__version__ = "0.1.0"
