"""The formats of 3D models: each is opened without its own library, bounded in time and memory."""
