"""People, and figures that look like people. `person` draws most of them."""
