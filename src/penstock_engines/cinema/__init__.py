"""Text to video, in reading order.

`reading` makes a `script` of the prompt: `lexicon` and `phrases` are its words, `atlas`, `setting` and `roles`
choose place and cast, `meaning` and `guessing` help where words leave it open. `stage` plays the script: a `scene`
of one of `places`, in `layers` before a `camera`, in `light`, `weather` and `water`, with `subjects` as `actors` on
their `paths`. `sound` makes what is heard, `film` the file; `video_engine` does all of it.
"""
