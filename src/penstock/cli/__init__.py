"""The `penstock` command; heavy imports stand inside the commands, so that each starts as fast as it can."""
