"""Things and buildings."""
