"""Gemini's image models: generateContent, whose reply is the picture, and whose refusals have status 200 too."""

import base64
import json
from typing import Any, ClassVar

from aiohttp import web
from doubles.media import Sample, answer
from doubles.openai_images import draw
from vendors.double import HttpDouble

from penstock.vendor_api.generation import Failed, Finished, LookupUnsupported, Refused, Unclear

RATIOS = {"1:1": (1024, 1024), "16:9": (1376, 768), "3:2": (1264, 848), "9:16": (768, 1376), "21:9": (1584, 672)}
SCALES = {"512": 0.5, "1K": 1, "2K": 2, "4K": 4}
ENDINGS = ("IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_RECITATION", "NO_IMAGE", "IMAGE_OTHER", "MAX_TOKENS")


def picture(size: tuple[int, int], kind: str = "png", shade: int = 0) -> dict[str, Any]:
    data = base64.b64encode(draw(f"{size[0]}x{size[1]}", kind, shade=shade)).decode()
    return {"inlineData": {"mimeType": f"image/{kind}", "data": data}}


def candidate(*parts: Any, reason: str = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]}


class GeminiImagesDouble(HttpDouble):
    """A prompt that is one of its reasons ends for this reason."""

    credential: ClassVar[str] = "AIza-0123456789abcdef0123456789abcdef"

    def __init__(self) -> None:
        super().__init__()
        self.billed: list[Any] = []

    def settings(self, **more: Any) -> str:
        given = {"type": "gemini_images", "base_url": f"{self.url}/v1beta", "api_key": self.credential, **more}
        table = {"poll_seconds": 0.02, **given}
        return "[vendors.gemini_images]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("x-goog-api-key") != self.credential:
            return answer(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}})
        if request.path != "/v1beta/models/gemini-3.1-flash-image:generateContent":
            return answer(404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "no such model"}})
        body = json.loads(await request.read())
        (turn,), config = body["contents"], body["generationConfig"]
        if config["responseModalities"] != ["IMAGE"] or turn["role"] != "user" or "candidateCount" in config:
            return answer(400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}})
        prompt = turn["parts"][0]["text"]
        self.billed.append(body)
        if prompt in ENDINGS:
            return answer(200, candidate({"text": f"see {self.url}"}, reason=prompt))
        if prompt == "text only":
            return answer(200, candidate({"text": "I would rather describe it."}))
        if prompt == "blocked":
            return answer(200, {"promptFeedback": {"blockReason": "SAFETY"}})
        image = config.get("imageConfig", {})
        scale = SCALES[image.get("imageSize", "1K")]
        wide, high = RATIOS[image.get("aspectRatio", "1:1")]
        size = (int(wide * scale), int(high * scale))
        kind = "jpeg" if prompt == "jpeg" else "png"
        thought = {**picture(size, shade=9), "thought": True}
        parts = [{"text": "Here it is."}, picture(size, kind) | {"thoughtSignature": "c2ln"}]
        return answer(200, {**candidate(thought, *parts), "responseId": "r1", "modelVersion": "gemini"})


DOUBLES = ()  # it has no orders to poll: tests/vendors/media/test_synchronous.py plays its part
LATER = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"}

SAMPLE = Sample(
    options={"type": "gemini_images", "api_key": "k"},
    operation={"id": "r1"},
    replies={
        "submit": [
            (200, candidate(picture((16, 16))), Finished),
            (200, candidate({"text": "so"}, {**picture((16, 16)), "thought": True}, picture((16, 16))), Finished),
            (200, candidate({**picture((16, 16)), "thought": True}), Failed),
            (200, candidate({"text": "no"}), Failed),
            (200, {"promptFeedback": {"blockReason": "SAFETY"}}, Failed),
            (200, {"candidates": [{"finishReason": "IMAGE_SAFETY"}]}, Failed),
            (200, {}, Failed),
            (200, [], Unclear),
            (400, {"error": {"status": "INVALID_ARGUMENT", "message": "no"}}, Failed),
            (403, {"error": {"status": "PERMISSION_DENIED"}}, Failed),
            (404, {"error": {"status": "NOT_FOUND"}}, Failed),
            (429, {"error": {"status": "RESOURCE_EXHAUSTED", "details": [LATER]}}, Refused),
            (429, {"error": {"details": "soon"}}, Refused),
            (500, {"error": {"status": "INTERNAL"}}, Unclear),
            (503, {"error": {"status": "UNAVAILABLE"}}, Unclear),
        ],
        "find": [(200, {}, LookupUnsupported)],
        "poll": [],
        "cancel": [(200, {}, bool)],
    },
    orders=[("gemini-3.1-flash-image", {"prompt": "a fox", "n": 1, "output_format": "png"})],
)
