"""People, their roles and sign-in."""
