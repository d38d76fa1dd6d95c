"""Vendors' replies on their way to the caller: passed through, repaired or translated."""
