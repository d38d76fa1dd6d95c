"""An upstream that answers like a vendor and makes small but real results."""
