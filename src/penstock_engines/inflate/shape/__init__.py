"""The geometry of a model: from an outline to a closed surface."""
