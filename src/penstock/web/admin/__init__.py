"""The administrator's pages, one file each."""
