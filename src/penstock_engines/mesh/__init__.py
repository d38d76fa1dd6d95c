"""3D models of any origin, in reading order.

- `solid` holds a model: triangles, normals, texture coordinates and materials.
- `reading` opens it: `opening` finds the format, `glb_reader` (with `glb_buffers` and `glb_scene`), `obj_reader`,
  `stl_reader` and `usd_reader` read it.
- `writing` writes it: `glb_file`, `obj_file`, `stl_file` and `usd_file`.
- `simplifying` removes faces and keeps the texture. `quads` pairs triangles.
- `render` draws it before a `backdrop`.
- `convert_engine` and `remesh_engine` run the whole.
"""
