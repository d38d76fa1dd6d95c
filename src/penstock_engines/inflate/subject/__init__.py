"""The subject of a picture, cut out."""
