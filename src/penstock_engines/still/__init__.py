"""Picture to film, in reading order.

- `still_engine` reads the prompt for camera, weather and sound, and writes the film.
- `relief` gives a picture depth, and shows it to a camera that has moved.
- `framing` cuts pictures to the size of the film.
"""
