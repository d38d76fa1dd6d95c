"""Small real files of every kind that models take, made by code."""

import io
import struct
import wave
import zipfile

import numpy as np
import trimesh
from PIL import Image

from penstock.simulator import samples


def picture(kind: str = "PNG", colour: str = "red", width: int = 40, height: int = 30) -> bytes:
    """A plain picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(buffer, kind)
    return buffer.getvalue()


def sound(seconds: float = 0.25) -> bytes:
    """A silent WAV."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(int(seconds * 8000) * 2))
    return buffer.getvalue()


def film() -> bytes:
    """A test card of one second."""
    return samples.make_video(64, 48, 1, seed=0)


def model() -> bytes:
    """A gem as a GLB."""
    return samples.make_model(0, None, texture=False)


def fbx(*names: bytes, version: int = 7400) -> bytes:
    """A binary FBX with these nodes, all empty."""
    head = b"Kaydara FBX Binary  \x00\x1a\x00" + struct.pack("<I", version)
    node = struct.Struct("<QQQB" if version >= 7500 else "<IIIB")
    for name in names:
        head += node.pack(len(head) + node.size + len(name), 0, 0, len(name)) + name
    return head + bytes(node.size)


def rigged() -> bytes:
    """A triangle bound to two joints, one metre tall by its bind matrices, with one clip of two seconds."""
    points = struct.pack("<9f", 0, 0, 0, 100, 0, 0, 0, 100, 0)
    shrink = np.diag([0.01, 0.01, 0.01, 1]).astype("<f4").tobytes()
    times = struct.pack("<3f", 0, 0.5, 2)
    document = {
        "asset": {"version": "2.0"},
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5126, "count": 2, "type": "MAT4"},
            {"bufferView": 2, "componentType": 5126, "count": 3, "type": "SCALAR"},
        ],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0, "skin": 0, "scale": [5, 5, 5]}, {"name": "hip", "children": [2]}, {"name": "knee"}],
        "scenes": [{"nodes": [0, 1]}],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 1}],
        "animations": [
            {"name": "walk", "channels": [], "samplers": [{"input": 2, "output": 0}]},
            {"channels": [], "samplers": []},
        ],
    }
    return samples.pack_glb(document, [points, shrink * 2, times])


def solid(form: str) -> bytes:
    """A 3D model in a format; `rigged` is a GLB with a skeleton and a clip."""
    ball = trimesh.creation.icosphere(subdivisions=1)
    match form:
        case "rigged":
            return rigged()
        case "fbx":
            return fbx(b"Objects")
        case "usdz":
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr("model.usdc", b"PXR-USDC" + bytes(200))
            return buffer.getvalue()
        case "obj":
            return str(ball.export(file_type="obj")).encode()
        case _:
            return bytes(ball.export(file_type=form))
