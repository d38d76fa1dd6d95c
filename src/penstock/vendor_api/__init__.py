"""The API that a vendor's author imports: types, and what vendors have in common."""
