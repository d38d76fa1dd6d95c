"""The settings: their tables, the sources of values, and the problems found."""
