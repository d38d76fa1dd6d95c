"""Share links: the API that manages them, and the public pages that they open."""
