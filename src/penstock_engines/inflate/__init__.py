"""Image to 3D, in reading order.

`picture` opens the file, `mask` finds the subject (`segmenter` where nothing else tells it), `outline` traces it,
`inflation` gives it height, `form` and `mesh` make a closed surface of it, `decimation` keeps the face limit,
`charts`, `texture`, `pbr` and `skin` clothe it, `glb_writer` writes it down and `render` draws its preview;
`model_engine` does all of it.
"""
