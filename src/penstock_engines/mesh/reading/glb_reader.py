"""Opens GLB models: all shown meshes in their rest pose, with base colours and PBR textures."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from penstock_engines.mesh.reading.glb_buffers import Buffers, decode_uri
from penstock_engines.mesh.reading.glb_scene import list_meshes, list_shown, move, pose
from penstock_engines.mesh.solid import Faces, Floats, Material, Piece, Solid, Texture, check_size, join
from penstock_engines.product import Unable

TRIANGLES, STRIP, FAN = 4, 5, 6
DRACO: Final = "KHR_draco_mesh_compression"
NO_DRACO: Final = "The GLB is compressed by Draco, which the built-in engine cannot read: give an uncompressed GLB."
NO_KTX2: Final = "A texture in the format KTX2 was left out: the built-in engine reads PNG, JPEG and WebP."
NO_LINES: Final = "Points and lines were left out: the built-in engine reads triangles."
REST: Final = "The skeleton and its animations were left out: the model is shown in its rest pose."


def read_glb(data: bytes) -> Solid:
    """Return the scene of a GLB as one model."""
    return _Reader(data).read()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._buffers = Buffers(data)
        self._warnings: dict[str, None] = {}
        self._textures: dict[int, Texture | None] = {}

    def read(self) -> Solid:
        materials = [self._read_material(entry) for entry in self._buffers.list("materials")]
        pieces: list[Piece] = []
        plain = len(materials)
        for mesh, skin, matrix in list_meshes(self._buffers):
            for part in mesh["primitives"]:
                pieces += self._read_part(part, skin, matrix, plain)
                check_size(sum(len(piece.faces) for piece in pieces), sum(len(piece.points) for piece in pieces))
        if any(piece.material == plain for piece in pieces):
            materials.append(Material())
        return join(pieces, materials, list(self._warnings))

    # -- meshes

    def _read_part(
        self, part: Mapping[str, Any], skin: Mapping[str, Any] | None, matrix: Floats, plain: int
    ) -> Iterator[Piece]:
        if part.get("mode", TRIANGLES) < TRIANGLES or "POSITION" not in part["attributes"]:
            self._warnings[NO_LINES] = None
            return
        if DRACO in part.get("extensions", {}):
            raise Unable(NO_DRACO)
        points, normals = self._table(part, "POSITION"), self._table(part, "NORMAL")
        if points is None:
            return
        faces = self._read_faces(part, len(points))
        if skin is not None and "JOINTS_0" in part["attributes"]:
            self._warnings[REST] = None
            matrix = pose(self._buffers, part, skin, list_shown(self._buffers))
        elif float(np.linalg.det(matrix[:3, :3])) < 0:
            faces = faces[:, ::-1]  # a mirror turns the faces inside out
        points, normals = move(points, normals, matrix)
        number = part.get("material")
        tints = self._table(part, "COLOR_0")
        yield Piece(
            points=points,
            faces=faces,
            normals=normals,
            places=self._read_places(part, number),
            tints=None if tints is None else tints[:, :3],
            material=plain if number is None else number,
        )

    def _table(self, part: Mapping[str, Any], name: str) -> Floats | None:
        number = part["attributes"].get(name)
        return None if number is None else self._buffers.table(number)

    def _read_faces(self, part: Mapping[str, Any], count: int) -> Faces:
        corners = np.arange(count)
        if "indices" in part:
            corners = self._buffers.table(part["indices"])[:, 0].astype(np.int64)
        mode = part.get("mode", TRIANGLES)
        if mode == TRIANGLES:
            return corners[: len(corners) // 3 * 3].reshape(-1, 3)
        if mode == FAN:
            return np.stack([np.full(len(corners) - 2, corners[0]), corners[1:-1], corners[2:]], axis=1)
        strip = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
        strip[1::2] = strip[1::2, [1, 0, 2]]
        return strip

    def _read_places(self, part: Mapping[str, Any], number: int | None) -> Floats | None:
        """Return the texture coordinates of the base colour, as the material moves them."""
        material: Mapping[str, Any] = {} if number is None else self._buffers.pick("materials", number)
        use = _find_colour(material)
        move_by = use.get("extensions", {}).get("KHR_texture_transform", {})
        channel = int(move_by.get("texCoord", use.get("texCoord", 0)))
        places = self._table(part, f"TEXCOORD_{channel}")
        if places is None or not move_by:
            return places
        angle = float(move_by.get("rotation", 0))
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        return (places * move_by.get("scale", (1, 1))) @ turn.T + move_by.get("offset", (0, 0))

    # -- materials

    def _read_material(self, entry: Mapping[str, Any]) -> Material:
        look = entry.get("pbrMetallicRoughness", {})
        gloss = entry.get("extensions", {}).get("KHR_materials_pbrSpecularGlossiness", {})
        factor = look.get("baseColorFactor") or gloss.get("diffuseFactor") or (1, 1, 1, 1)
        red, green, blue = (float(np.clip(value, 0, 1)) for value in factor[:3])
        surface = self._find_texture(look.get("metallicRoughnessTexture"))
        return Material(
            name=str(entry.get("name") or "surface")[:80],
            colour=(red, green, blue),
            roughness=float(np.clip(look.get("roughnessFactor", 1 - float(gloss.get("glossinessFactor", 0))), 0, 1)),
            metallic=float(np.clip(look.get("metallicFactor", 0 if gloss else 1), 0, 1)),
            texture=self._find_texture(_find_colour(entry)),
            normal=self._find_texture(entry.get("normalTexture")),
            surface=surface,
        )

    def _find_texture(self, use: Mapping[str, Any] | None) -> Texture | None:
        if not use:
            return None
        texture = self._buffers.pick("textures", use["index"])
        extensions = texture.get("extensions", {})
        number = extensions.get("EXT_texture_webp", {}).get("source", texture.get("source"))
        if number is None:
            self._warnings[NO_KTX2] = None
            return None
        if number not in self._textures:
            self._textures[number] = self._read_image(self._buffers.pick("images", number))
        return self._textures[number]

    def _read_image(self, image: Mapping[str, Any]) -> Texture | None:
        data = decode_uri(image["uri"]) if "uri" in image else bytes(self._buffers.view(image["bufferView"]))
        if data.startswith(b"\xabKTX"):
            self._warnings[NO_KTX2] = None
            return None
        return Texture(data)


def _find_colour(material: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a material uses the texture of its base colour; nothing if it has none."""
    gloss = material.get("extensions", {}).get("KHR_materials_pbrSpecularGlossiness", {})
    return material.get("pbrMetallicRoughness", {}).get("baseColorTexture") or gloss.get("diffuseTexture") or {}
