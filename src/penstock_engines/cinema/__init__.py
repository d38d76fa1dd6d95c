"""Text to video, in reading order.

- `prompt` reads the prompt and writes a `script`: place, cast, time, weather and camera. It lists what is not drawn.
- `stage` plays the script frame by frame. It builds a `scene`, adds weather and particles, and `casting` puts
  `actors` on their `paths`. A `camera` moves before all of it.
- `places` build the scene, `landscape` has the elements that they share, and `subjects` are the drawn actors.
  Those of `subjects.sprites` are pictures of the package `cast`.
- `paint` has the tools below: brush, layers and light.
- `sound` mixes the `noises` of a place, `film` writes the MP4 file, and `video_engine` runs the whole.
"""
