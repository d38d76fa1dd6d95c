"""Turns the words of a prompt into a script: place, cast, weather and camera."""
