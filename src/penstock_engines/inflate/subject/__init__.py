"""Finds the subject of a picture and cuts it out."""
