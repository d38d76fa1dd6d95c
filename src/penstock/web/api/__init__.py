"""The public pages, one file each."""
