"""Writes a model as USDZ: a zip of a text scene and its textures, stored at multiples of 64 bytes."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from penstock_engines.mesh.solid import Material, Solid, Texture
from penstock_engines.mesh.writing.obj_file import MOMENT

ALIGNED: Final = 64
HEAD_BYTES: Final = 30
"""Of an entry in a zip, before its name."""
PADDING: Final = 0x1986
"""Id of the extra field that fills up the head, as the format's own tools write it."""
LARGEST_TEXTURE: Final = 4096


def write_usdz(solid: Solid, path: Path) -> None:
    """Write the model in meters, y up."""
    textures: dict[Texture, str] = {}
    scene = "".join(_list_scene(solid, textures)).encode()
    with path.open("wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _store(archive, "model.usda", scene)
        for texture, name in textures.items():
            _store(archive, name, _encode(texture))


def _store(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Store a file so that its first byte is at a multiple of 64."""
    entry = zipfile.ZipInfo(name, MOMENT)
    assert archive.fp is not None  # noqa: S101  it is open
    start = archive.fp.tell() + HEAD_BYTES + len(name.encode())
    missing = (-start - 4) % ALIGNED
    entry.extra = PADDING.to_bytes(2, "little") + missing.to_bytes(2, "little") + bytes(missing)
    archive.writestr(entry, data)


def _encode(texture: Texture) -> bytes:
    """Return a PNG or JPEG: the format has no WebP."""
    if texture.suffix != ".webp":
        return texture.data
    encoded = io.BytesIO()
    Image.fromarray(texture.decode(LARGEST_TEXTURE)).save(encoded, "PNG")
    return encoded.getvalue()


def _list_scene(solid: Solid, textures: dict[Texture, str]) -> Iterator[str]:
    yield '#usda 1.0\n(\n    defaultPrim = "model"\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n\n'
    yield 'def Xform "model" (\n    kind = "component"\n)\n{\n'
    owners: list[int] = np.unique(solid.owners).tolist()
    for owner in owners:
        yield from _list_mesh(solid.only(owner), owner)
    yield '    def Scope "materials"\n    {\n'
    for owner in owners:
        yield from _list_material(solid.materials[owner], owner, textures, is_placed=solid.places is not None)
    yield "    }\n}\n"


def _list_mesh(part: Solid, owner: int) -> Iterator[str]:
    low, high = part.points.min(axis=0), part.points.max(axis=0)
    yield f'    def Mesh "part{owner}" (\n        prepend apiSchemas = ["MaterialBindingAPI"]\n    )\n    {{\n'
    yield f"        float3[] extent = [{_row(low)}, {_row(high)}]\n"
    yield f"        int[] faceVertexCounts = [{', '.join(['3'] * len(part.faces))}]\n"
    yield f"        int[] faceVertexIndices = [{', '.join(map(str, part.faces.ravel().tolist()))}]\n"
    yield f"        rel material:binding = </model/materials/material{owner}>\n"
    yield f"        normal3f[] normals = [{_rows(part.normals)}] (\n"
    yield '            interpolation = "vertex"\n        )\n'
    yield f"        point3f[] points = [{_rows(part.points)}]\n"
    if part.tints is not None:
        yield f"        color3f[] primvars:displayColor = [{_rows(part.tints)}] (\n"
        yield '            interpolation = "vertex"\n        )\n'
    if part.places is not None:
        places = np.stack([part.places[:, 0], 1 - part.places[:, 1]], axis=1)
        yield f"        texCoord2f[] primvars:st = [{_rows(places)}] (\n"
        yield '            interpolation = "vertex"\n        )\n'
    yield '        uniform token subdivisionScheme = "none"\n    }\n\n'


def _list_material(material: Material, owner: int, textures: dict[Texture, str], *, is_placed: bool) -> Iterator[str]:
    """Yield a preview surface. Inputs are colours and numbers, or outputs of textures."""
    own = f"/model/materials/material{owner}"
    red, green, blue = material.colour
    inputs = {
        "color3f inputs:diffuseColor": f" = ({red:.4f}, {green:.4f}, {blue:.4f})",
        "float inputs:roughness": f" = {material.roughness:.4f}",
        "float inputs:metallic": f" = {material.metallic:.4f}",
    }
    shaders: list[str] = []

    def use(texture: Texture | None, name: str, channels: dict[str, str], extra: str) -> None:
        """Connect inputs with the channels of a texture."""
        if texture is None or not is_placed:
            return
        suffix = ".png" if texture.suffix == ".webp" else texture.suffix
        file = textures.setdefault(texture, f"texture{len(textures)}{suffix}")
        inputs.update({key: f".connect = <{own}/{name}.outputs:{channel}>" for key, channel in channels.items()})
        kinds = {channel: "float" if len(channel) == 1 else "float3" for channel in channels.values()}
        declared = "".join(f"                {kind} outputs:{channel}\n" for channel, kind in kinds.items())
        space = "sRGB" if name == "colour" else "raw"
        shaders.append(_texture_shader(own, name, file, space, declared + extra))

    factor = f"                float4 inputs:scale = ({red:.4f}, {green:.4f}, {blue:.4f}, 1)\n"
    use(material.texture, "colour", {"color3f inputs:diffuseColor": "rgb"}, factor)
    channels = {"float inputs:roughness": "g", "float inputs:metallic": "b"}
    strength = f"                float4 inputs:scale = (1, {material.roughness:.4f}, {material.metallic:.4f}, 1)\n"
    use(material.surface, "surface", channels, strength)
    bias = "                float4 inputs:bias = (-1, -1, -1, 0)\n                float4 inputs:scale = (2, 2, 2, 1)\n"
    use(material.normal, "normal", {"normal3f inputs:normal": "rgb"}, bias)
    yield f'        def Material "material{owner}"\n        {{\n'
    yield f"            token outputs:surface.connect = <{own}/preview.outputs:surface>\n\n"
    yield '            def Shader "preview"\n            {\n'
    yield '                uniform token info:id = "UsdPreviewSurface"\n'
    yield from (f"                {key}{value}\n" for key, value in inputs.items())
    yield "                token outputs:surface\n            }\n\n"
    if shaders:
        yield '            def Shader "places"\n            {\n'
        yield '                uniform token info:id = "UsdPrimvarReader_float2"\n'
        yield '                string inputs:varname = "st"\n                float2 outputs:result\n            }\n\n'
    yield from shaders
    yield "        }\n\n"


def _texture_shader(own: str, name: str, file: str, space: str, outputs: str) -> str:
    return (
        f'            def Shader "{name}"\n            {{\n'
        '                uniform token info:id = "UsdUVTexture"\n'
        f"                asset inputs:file = @{file}@\n"
        f'                token inputs:sourceColorSpace = "{space}"\n'
        f"                float2 inputs:st.connect = <{own}/places.outputs:result>\n"
        '                token inputs:wrapS = "repeat"\n                token inputs:wrapT = "repeat"\n'
        f"{outputs}            }}\n\n"
    )


def _row(values: NDArray[np.float64]) -> str:
    return f"({', '.join(f'{value:.7g}' for value in values.tolist())})"


def _rows(values: NDArray[np.float64]) -> str:
    return ", ".join(map(_row, values))
