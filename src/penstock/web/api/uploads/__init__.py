"""Pages of uploads in several requests."""
