"""3D models of any origin, in reading order.

- `solid` holds a model: triangles, normals, texture coordinates and materials.
- `opening` finds the format of a file. `glb_reader` with `glb_buffers` and `glb_scene`, `obj_reader`, `stl_files` and
  `usd_reader` open it.
- `glb_file`, `obj_file`, `stl_files` and `usd_file` write it.
- `simplifying` removes faces and keeps the texture. `quads` pairs triangles.
- `render` draws it.
- `convert_engine` and `remesh_engine` run the whole.
"""
