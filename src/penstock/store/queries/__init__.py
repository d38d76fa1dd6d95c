"""SQL of each concept, as plain functions of a connection."""
