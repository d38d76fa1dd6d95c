"""Image to 3D, in reading order.

- `subject` opens the picture and cuts the subject out: `picture`, `segmenter`, `mask`, `parts`, `flatness`.
- `shape` makes a closed surface of it: `outline`, then `inflation`, `lathe` and `furniture`, put together by `solids`,
  then `mesh` and `decimation`, put together by `form`.
- `material` covers the surface: `uv_charts`, `texture`, `pbr`, put together by `skin`.
- `glb_writer` writes the file. `render` draws the preview with `raster`.
- `model_engine` runs the whole. `text_engine` draws the picture first, from a prompt.
"""
