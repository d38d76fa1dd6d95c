"""Views to 3D, in reading order.

- `views` opens the pictures of the sides and cuts the subject out of each.
- `carving` makes the body that has these outlines. `covering` projects the pictures onto it.
- `hull_engine` runs the whole.
"""
