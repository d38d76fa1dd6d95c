"""Text to picture, in reading order.

- `picture_engine` reads the prompt with the film engine's `cinema.prompt`, and writes the pictures.
- `composition` draws one: a moment of the film engine's stage, in which the subjects are large.
- `cutout` draws the subjects alone, on a transparent background.
- `picture_file` writes PNG, JPEG and WebP.
"""
