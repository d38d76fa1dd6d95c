"""Places that people built."""
