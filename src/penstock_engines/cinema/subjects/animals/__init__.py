"""Animals."""
