"""Places that people built: streets, settlements, rooms, a garden and a concert hall."""
