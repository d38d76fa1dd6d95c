"""The settings: their tables, where values come from, and what is wrong with them."""
