"""Opens models that are packages or sealed: USDZ, a zip with an OBJ, and FBX."""

import struct
import zipfile
from pathlib import PurePosixPath
from typing import IO, Final

from penstock.domain.files import MeshFacts
from penstock.inspection.meshes.obj import MAX_TEXT_BYTES, TOO_LARGE, ObjReader

MAX_ENTRIES: Final = 1000
MAX_DIRECTORY_BYTES: Final = 512 * 1024
MAX_UNPACKED_BYTES: Final = 1024**3
END_OF_DIRECTORY: Final = b"PK\x05\x06"
TAIL_BYTES: Final = 22 + 65_535
PICTURES: Final = (".png", ".jpg", ".jpeg", ".webp", ".avif", ".exr")
BINARY_FBX: Final = b"Kaydara FBX Binary  \x00"
WRITTEN_FBX: Final = b"; FBX "
MAX_FBX_NODES: Final = 100


def open_zip(file: IO[bytes], size: int) -> zipfile.ZipFile:
    """Open an archive with a directory of bounded size; raise a ValueError if it is damaged, or more than a package."""
    file.seek(max(0, size - TAIL_BYTES))
    tail = file.read(TAIL_BYTES)
    end = tail.rfind(END_OF_DIRECTORY)
    if end < 0 or len(tail) < end + 22:
        raise ValueError("its directory is missing: it is cut off")
    entries, directory = struct.unpack_from("<HI", tail, end + 10)
    if entries > MAX_ENTRIES or directory > MAX_DIRECTORY_BYTES:
        raise ValueError(f"it has more than {MAX_ENTRIES} files")
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ValueError("its directory is damaged") from error
    _check_entries(archive)
    return archive


def _check_entries(archive: zipfile.ZipFile) -> None:
    if len(archive.infolist()) > MAX_ENTRIES:
        raise ValueError(f"it has more than {MAX_ENTRIES} files")
    if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("it has a file with a path outside of it")
        if entry.flag_bits & 1:
            raise ValueError("it has an encrypted file")


def read_usdz(archive: zipfile.ZipFile) -> MeshFacts:
    """Describe a USDZ: stored files, of which the first is the scene. The scene itself stays sealed."""
    entries = archive.infolist()
    packed = [entry for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise ValueError("it has compressed files; a USDZ stores them")
    head = _read_head(archive, entries[0], 8)
    if head != b"PXR-USDC" and not head.startswith((b"#usda", b"PK\x03\x04")):
        raise ValueError("its first file is not a USD scene")
    pictures = [entry for entry in entries if entry.filename.lower().endswith(PICTURES)]
    return MeshFacts(format="usdz", textures=len(pictures))


def read_zipped_obj(archive: zipfile.ZipFile) -> tuple[int, int, MeshFacts]:
    """Read the only OBJ of a zip."""
    models = [entry for entry in archive.infolist() if entry.filename.lower().endswith(".obj")]
    if len(models) != 1:
        raise ValueError(f"it holds {len(models)} OBJ files; exactly one is allowed")
    if models[0].file_size > MAX_TEXT_BYTES:
        raise ValueError(TOO_LARGE)
    try:
        with archive.open(models[0]) as file:
            return ObjReader().read(file)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as error:
        raise ValueError("its OBJ file is damaged") from error


def is_usdz(archive: zipfile.ZipFile) -> bool:
    """Return whether the first file of an archive has the name of a USD scene."""
    entries = archive.infolist()
    return bool(entries) and entries[0].filename.lower().endswith((".usda", ".usdc", ".usd"))


def read_fbx(file: IO[bytes], size: int) -> MeshFacts:
    """Check the frame of an FBX: its top nodes follow each other, and there are objects. The rest stays sealed."""
    file.seek(0)
    head = file.read(27)
    if head.startswith(WRITTEN_FBX):
        return MeshFacts(format="fbx")
    if len(head) < 27:
        raise ValueError("it is cut off")
    place, names = 27, set[bytes]()
    # From version 7.5 on, the numbers in the head of a node are twice as wide.
    node = struct.Struct("<QQQB" if int.from_bytes(head[23:], "little") >= 7500 else "<IIIB")
    for _ in range(MAX_FBX_NODES):
        file.seek(place)
        data = file.read(node.size)
        if len(data) < node.size:
            raise ValueError("it is cut off")
        end, _, _, length = node.unpack(data)
        if end == 0:
            break
        if not place + node.size <= end <= size:
            raise ValueError("a node ends outside the file")
        names.add(file.read(length))
        place = end
    if b"Objects" not in names:
        raise ValueError("it has no objects")
    return MeshFacts(format="fbx")


def _read_head(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, count: int) -> bytes:
    try:
        with archive.open(entry) as file:
            return file.read(count)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as error:
        raise ValueError("its first file is damaged") from error
