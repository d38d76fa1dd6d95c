"""Writes of runners to the jobs that they have claimed."""
