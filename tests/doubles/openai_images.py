"""OpenAI's Images API, and servers that speak it: one synchronous call, whose reply is the result."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from aiohttp import web
from doubles.media import Sample, answer
from PIL import Image
from python_multipart import parse_form
from vendors.double import HttpDouble

from penstock.vendor_api.generation import Accepted, Failed, Finished, LookupUnsupported, Refused, Unclear

KNOWN = {
    *("prompt", "model", "n", "size", "quality", "background", "output_format", "output_compression"),
    *("moderation", "stream", "partial_images", "user", "safety_identifier"),
}
MARKER = "FORBIDDEN"
"""A prompt with this word is refused."""


def trouble(
    message: str, code: str | None = None, kind: str = "invalid_request_error", param: str | None = None
) -> Any:
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


def draw(size: str, kind: str, background: str = "auto", shade: int = 0) -> bytes:
    """A real picture of this size and type."""
    width, height = (int(side) for side in size.split("x"))
    mode, colour = ("RGBA", (200, 60, shade, 0)) if background == "transparent" else ("RGB", (200, 60, shade))
    buffer = io.BytesIO()
    Image.new(mode, (width, height), colour).save(buffer, kind.upper())
    return buffer.getvalue()


def find_wrong_size(size: str) -> bool:
    if size in ("auto", "1024x1024", "1536x1024", "1024x1536"):
        return False
    width, height = (int(side) for side in size.split("x"))
    fits = width % 16 == height % 16 == 0 and 1 / 3 <= width / height <= 3 and max(width, height) <= 3840
    return not fits or not 655_360 <= width * height <= 8_294_400


def read_parts(request: web.BaseRequest, body: bytes) -> tuple[dict[str, str], list[tuple[str, bytes]]]:
    """The plain fields and the files of a multipart body, in order."""
    fields: dict[str, str] = {}
    files: list[tuple[str, bytes]] = []

    def on_field(field: Any) -> None:
        fields[field.field_name.decode()] = (field.value or b"").decode()

    def on_file(file: Any) -> None:
        file.file_object.seek(0)
        files.append((file.field_name.decode(), file.file_object.read()))

    parse_form({"Content-Type": request.headers["Content-Type"].encode()}, io.BytesIO(body), on_field, on_file)
    return fields, files


class OpenAIImagesDouble(HttpDouble):
    """OpenAI's own: strict about fields and sizes. `billed` are the orders that were made, whoever heard of it."""

    credential: ClassVar[str] = "sk-0123456789abcdef0123456789abcdef"

    def __init__(self) -> None:
        super().__init__()
        self.billed: list[dict[str, Any]] = []
        self.files: list[tuple[str, bytes]] = []

    def settings(self, **more: Any) -> str:
        given = {"type": "openai_images", "base_url": f"{self.url}/v1", "api_key": self.credential, **more}
        table = {"poll_seconds": 0.02, **given}
        return "[vendors.openai_images]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble("Incorrect API key provided", "invalid_api_key"))
        body = await request.read()
        match request.path:
            case "/v1/images/generations":
                return self.make(json.loads(body), [])
            case "/v1/images/edits":
                return self.make(*read_parts(request, body))
        return answer(404, trouble("no such path"))

    def make(self, fields: Mapping[str, Any], files: list[tuple[str, bytes]]) -> web.Response:
        if problem := self.find_problem(fields, files):
            return answer(400, problem)
        size, kind = fields.get("size", "1024x1024"), fields.get("output_format", "png")
        count = int(fields.get("n", 1))
        self.billed.append({**fields, "files": [name for name, _ in files]})
        self.files = files
        pictures = [draw(size, kind, fields.get("background", "auto"), 60 * number) for number in range(count)]
        return answer(200, self.reply(pictures) | {"size": size, "output_format": kind})

    def reply(self, pictures: Sequence[bytes]) -> dict[str, Any]:
        data = [{"b64_json": base64.b64encode(picture).decode()} for picture in pictures]
        usage = {"input_tokens": 9, "output_tokens": 1056 * len(data), "total_tokens": 9 + 1056 * len(data)}
        return {"created": 1, "data": data, "usage": usage}

    def find_problem(self, fields: Mapping[str, Any], files: list[tuple[str, bytes]]) -> Any:
        unknown = sorted(fields.keys() - KNOWN)
        if unknown:
            return trouble(f"Unknown parameter: '{unknown[0]}'.", "unknown_parameter", param=unknown[0])
        if MARKER in fields.get("prompt", ""):
            text = "Your request was rejected by the safety system. safety_violations=[violence]."
            return trouble(text, "moderation_blocked", "image_generation_user_error")
        if find_wrong_size(fields.get("size", "auto")):
            return trouble("Invalid size", "invalid_value", param="size")
        sizes = {name: Image.open(io.BytesIO(data)).size for name, data in reversed(files)}
        if "mask" in sizes and sizes["mask"] != sizes.get("image", sizes.get("image[]")):
            return trouble("Invalid mask image format - mask size does not match image size", param="mask")
        return None


class OtherServerDouble(OpenAIImagesDouble):
    """A self-hosted server: takes unknown fields, and answers with links unless it is asked for Base64."""

    errors = "object"

    def __init__(self, errors: str = "object") -> None:
        super().__init__()
        self.errors = errors

    def find_problem(self, fields: Mapping[str, Any], _files: list[tuple[str, bytes]]) -> Any:
        if MARKER not in fields.get("prompt", ""):
            return None
        shapes = {"object": trouble("no"), "string": {"error": "no"}, "detail": {"detail": [{"msg": "no"}]}}
        return shapes[self.errors]


class LinkingDouble(OtherServerDouble):
    """A server that always answers with links to its own files."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] = []

    def reply(self, pictures: Sequence[bytes]) -> dict[str, Any]:
        self.kept = list(pictures)
        return {"data": [{"url": f"{self.url}/generated/{number}.png"} for number in range(len(pictures))]}

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/generated/"):
            number = int(request.path.rpartition("/")[2].removesuffix(".png"))
            return web.Response(body=self.kept[number])
        return await super().play(request)


DOUBLES = ()  # it has no orders to poll: tests/vendors/media/test_synchronous.py plays its part
PNG = base64.b64encode(draw("16x16", "png")).decode()

SAMPLE = Sample(
    options={"type": "openai_images", "api_key": "sk-1"},
    operation={"urls": ["https://images.example/a.png"], "expected": {}},
    replies={
        "submit": [
            (200, {"created": 1, "data": [{"b64_json": PNG}]}, Finished),
            (200, {"data": [{"b64_json": PNG}, {"b64_json": PNG}]}, Finished),
            (200, {"data": [{"url": "https://images.example/a.png", "b64_json": None}]}, Accepted),
            (200, {"data": []}, Failed),
            (200, {"data": [{}]}, Failed),
            (200, {"created": 1}, Unclear),
            (400, trouble("no", "moderation_blocked", "image_generation_user_error"), Failed),
            (400, trouble("no", param="size"), Failed),
            (400, {"error": "a text"}, Failed),
            (422, {"detail": [{"loc": ["body", "n"], "msg": "no"}]}, Failed),
            (401, trouble("no"), Failed),
            (403, trouble("Your organization must be verified"), Failed),
            (404, trouble("no", "model_not_found"), Failed),
            (413, {}, Failed),
            (429, trouble("slow down", "rate_limit_exceeded"), Refused),
            (429, trouble("no money", "insufficient_quota"), Failed),
            (500, trouble("oops"), Unclear),
            (503, trouble("oops"), Unclear),
        ],
        "find": [(200, {}, LookupUnsupported)],
        "poll": [],
        "cancel": [(200, {}, bool)],
    },
    orders=[("gpt-image-2", {"prompt": "a fox", "n": 1, "output_format": "png", "background": "auto"})],
)
