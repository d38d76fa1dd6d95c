"""Hostile files: whatever is done to a signed file, or pretended by an unsigned one, the verdict is the right one."""

import io
import json
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import c2pa
import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from PIL import Image
from signers import MAKERS, Signer, issue, key_pem, make_signer, pem, sign_file
from small_media import film, picture

from penstock.domain.job_errors import FileUnreadable
from penstock.inspection.manifests import read_manifest
from penstock.jobs.files.verification import verify_alone

OURS = make_signer("Penstock")
PNG, OTHER_PNG, MP4 = picture(), picture(colour="blue"), film()
SIGNED_PNG, SIGNED_MP4 = sign_file(OURS, "image/png", PNG), sign_file(OURS, "video/mp4", MP4)
PAGE = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" {0}/></rdf:RDF>'
XMP = f'<x:xmpmeta xmlns:x="adobe:ns:meta/">{PAGE}</x:xmpmeta>'
DESCRIPTION = b"jumd" + bytes.fromhex("6332706100110010800000aa00389b71") + b"\x03c2pa\0"


async def judge(folder: Path, data: bytes, anchors: str = OURS.root) -> tuple[str, bool, list[str]]:
    """Return verdict, trust and the codes of the problems, by a check without a server."""
    file = folder / "file"
    file.write_bytes(data)
    report = await verify_alone(file, None, anchors)
    return report["verdict"], report["is_trusted"], [problem["code"] for problem in report["problems"]]


def state_of(content_type: str, data: bytes) -> str:
    """Return what c2pa's own reader says, with the same root."""
    context = c2pa.Context.from_dict({"trust": {"trust_anchors": OURS.root}})
    with c2pa.Reader(content_type, io.BytesIO(data), context=context) as reader:
        return json.loads(reader.json())["validation_state"]


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    place, found = 8, []
    while place < len(data):
        length = int.from_bytes(data[place : place + 4])
        found.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += length + 12
    return found


def png(*parts: tuple[bytes, bytes]) -> bytes:
    whole = (len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4) for kind, data in parts)
    return PNG[:8] + b"".join(whole)


def with_chunk(data: bytes, kind: bytes, content: bytes) -> bytes:
    """The picture with this chunk behind its first one, in place of others of its kind."""
    first, *rest = chunks(data)
    return png(first, (kind, content), *(each for each in rest if each[0] != kind))


def box(kind: bytes, content: bytes) -> bytes:
    return (len(content) + 8).to_bytes(4) + kind + content


STORE = next(data for kind, data in chunks(SIGNED_PNG) if kind == b"caBX")


@pytest.mark.parametrize(("kind", "data"), [("image/png", SIGNED_PNG), ("video/mp4", SIGNED_MP4)])
async def test_an_untouched_file_is_ours(tmp_path, kind, data):
    assert await judge(tmp_path, data) == ("signed_here", True, [])
    assert state_of(kind, data) == "Trusted"


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("manifest of another picture", with_chunk(OTHER_PNG, b"caBX", STORE), "assertion.dataHash.mismatch"),
        ("bytes behind a picture", SIGNED_PNG + b"more", "assertion.dataHash.mismatch"),
        ("a box behind a film", SIGNED_MP4 + box(b"mdat", b"more"), "assertion.bmffHash.mismatch"),
        ("bytes behind a film", SIGNED_MP4 + b"x" * 50, "manifest.unreadable"),
        ("two manifests", png(*chunks(SIGNED_PNG)[:2], *chunks(SIGNED_PNG)[1:]), "manifest.unreadable"),
        ("a picture cut off", SIGNED_PNG[: len(SIGNED_PNG) // 2], "manifest.unreadable"),
        ("a film cut off", SIGNED_MP4[:-20], "assertion.bmffHash.mismatch"),
        ("many flat boxes", with_chunk(PNG, b"caBX", box(b"jumb", box(b"jumd", DESCRIPTION[4:]) * 50_000)), ""),
    ],
)
async def test_a_changed_file_is_tampered_and_never_trusted(tmp_path, name, data, code):
    verdict, is_trusted, codes = await judge(tmp_path, data)
    assert (verdict, is_trusted) == ("tampered", False), name
    assert codes[0] == (code or codes[0]), name


@pytest.mark.parametrize(
    ("name", "data", "codes"),
    [
        ("stripped", png(*(each for each in chunks(SIGNED_PNG) if each[0] != b"caBX")), []),
        ("never signed", PNG, []),
        ("never signed and cut off", PNG[:60], ["file.unreadable"]),
        ("an odd picture", b"GIF89a" + bytes(50), ["file.unreadable"]),
        ("a document", b"%PDF-1.4 and no more", ["file.unreadable"]),
        ("text", b"hello", []),
        ("a box of two gigabytes", MP4[:32] + b"\x7f\xff\xff\xffuuid" + bytes(50), ["file.unreadable"]),
        ("boxes in boxes", b"".join((8 * n).to_bytes(4) + b"jumb" for n in range(100_000, 0, -1)), []),
    ],
)
async def test_a_file_without_a_signature_is_never_called_tampered(tmp_path, name, data, codes):
    assert await judge(tmp_path, data) == ("unsigned", False, codes), name


@pytest.mark.parametrize("depth", [1_000, 200_000])
async def test_manifests_nested_without_end(tmp_path, depth):
    head = (len(DESCRIPTION) + 4).to_bytes(4) + DESCRIPTION
    step = 8 + len(head)
    store = b"".join((step * left).to_bytes(4) + b"jumb" + head for left in range(depth, 0, -1))
    assert await judge(tmp_path, with_chunk(PNG, b"caBX", store)) == ("tampered", False, ["manifest.unreadable"])


@pytest.mark.parametrize("wrap", [lambda boxes: boxes, lambda boxes: box(b"meta", bytes(4) + boxes)])
async def test_a_film_of_very_many_boxes_is_not_read(tmp_path, wrap):
    with pytest.raises(FileUnreadable, match="more than 10000 boxes"):
        await judge(tmp_path, SIGNED_MP4 + wrap(box(b"free", b"") * 20_000))


async def test_only_our_key_makes_it_ours(tmp_path):
    root_key, key = MAKERS["es256"](), MAKERS["es256"]()
    leaf = issue("Penstock", key, "Root of Penstock", root_key, purpose=ExtendedKeyUsageOID.EMAIL_PROTECTION)
    rival = make_signer("Penstock")
    for name, signer in {
        "our names": rival,
        "our root behind another leaf": Signer(pem(leaf) + OURS.root, key_pem(key), OURS.root, "es256"),
        "our chain behind another": Signer(rival.chain + OURS.chain, rival.key, rival.root, "es256"),
    }.items():
        data = sign_file(signer, "image/png", PNG)
        assert await judge(tmp_path, data) == ("signed_elsewhere", False, []), name
        assert state_of("image/png", data) == "Valid", name
    over = sign_file(rival, "image/png", SIGNED_PNG)
    assert (await judge(tmp_path, over))[:2] == ("signed_elsewhere", False), "ours is only its parent"


@pytest.fixture
def visits() -> Iterator[list[str]]:
    """Paths that were fetched from a server on this machine; its address is the first."""
    found: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.append(self.path)
            self.send_error(404)

        do_POST = do_GET  # noqa: N815  the name that the library calls

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.append(f"http://127.0.0.1:{server.server_port}")
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


async def test_no_address_in_a_file_is_fetched(tmp_path, visits):
    name = f'xmlns:dcterms="http://purl.org/dc/terms/" dcterms:provenance="{visits[0]}/manifest.c2pa"'
    data = with_chunk(PNG, b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + XMP.format(name).encode())
    assert await judge(tmp_path, data) == ("unsigned", False, ["manifest.inaccessible"])
    found = read_manifest(io.BytesIO(data), OURS.root, "")  # in this process, which may go online
    assert found is not None
    assert not found.is_inside
    assert visits[1:] == []
    with pytest.raises(c2pa.C2paError):
        c2pa.Reader("image/png", io.BytesIO(data))
    assert visits[1:] == ["/manifest.c2pa"], "another reader does fetch it"


async def test_a_picture_with_a_manifest_in_another_format_is_not_ours(tmp_path):
    jpeg = io.BytesIO()
    Image.open(io.BytesIO(PNG)).convert("RGB").save(jpeg, "JPEG")
    signed = sign_file(OURS, "image/jpeg", jpeg.getvalue())
    assert (await judge(tmp_path, signed))[0] == "signed_here"
    assert (await judge(tmp_path, signed[:40] + SIGNED_PNG))[0] == "tampered"
