"""Sky, land, water, plants and weather, as layers of a scene."""
