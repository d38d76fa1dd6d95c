"""People and figures that look like them."""
