"""Who may spend how much, and what was used: admission, leases, journal, usage."""
