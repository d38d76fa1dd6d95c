"""The `penstock` command. Heavy imports are inside the commands, so that each starts fast."""
