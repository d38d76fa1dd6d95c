"""The surface of a model: its texture and its material maps."""
