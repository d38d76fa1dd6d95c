"""The models on offer, with their routes and prices."""
