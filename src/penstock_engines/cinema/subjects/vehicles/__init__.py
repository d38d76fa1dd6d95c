"""Vehicles on land, on water, in the air and in space."""
