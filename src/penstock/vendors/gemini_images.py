"""`gemini_images`: pictures by Google's Gemini image models, in one generateContent call for each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import edit_image, text_to_image
from penstock.catalog.params import as_object
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamRejected
from penstock.vendor_api.films import Unfit
from penstock.vendor_api.generation import (
    Base64,
    Call,
    Done,
    Failed,
    Finished,
    Flow,
    GenerationDefaults,
    Kind,
    Order,
    Output,
    Refused,
    Reply,
    Role,
    Running,
    ServedModel,
    VendorFolders,
    VendorOptions,
)
from penstock.vendor_api.pictures import ParamTerm, PictureOrder, PictureTerms, RatioTerms, ask_picture
from penstock.vendor_api.replies import GONE, classify_refusal, upstream_reason

MODEL: Final = "gemini-3.1-flash-image"
MAX_IMAGES: Final = 14
MAX_INLINE_BYTES: Final = 14 * 1024 * 1024
"""Upper bound of all pictures of one call, as a call of 20 MB is refused and Base64 adds a third."""
RATIOS: Final = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
FILTERED: Final = {
    *("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
}
"""Reasons to end without a picture that are the content's; all others are the model's."""
TERMS: Final = PictureTerms(
    vendor="Gemini",
    terms={"prompt": ParamTerm("prompt"), "seed": ParamTerm("seed")},
    size=RatioTerms("aspectRatio", RATIOS, ParamTerm("imageSize", {name: name for name in text_to_image.LONG_SIDE})),
    most=1,
    images="parts",
    most_images=MAX_IMAGES,
)
_RETRY_DELAY: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,9})?)s")


class GeminiImagesOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `gemini_images`."""

    base_url: str = Field(
        default="https://generativelanguage.googleapis.com/v1beta",
        description="what `/models/MODEL:generateContent` is appended to",
    )
    max_concurrent: int = Field(default=10, ge=1, description="how many pictures it makes at once")
    reply_seconds: float = Field(default=600.0, gt=0, description="timeout of a whole order, as it answers at the end")


# -- replies


class _Inline(msgspec.Struct, rename="camel"):
    data: str
    mime_type: str = ""


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    inline_data: _Inline | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str = ""
    finish_message: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] = []
    prompt_feedback: Any = None
    response_id: str | None = None


class GeminiImages(GenerationDefaults):
    """Orders whose reply is the picture. Google keeps nothing, so an order whose reply is lost cannot be found."""

    options_type: ClassVar[type[VendorOptions]] = GeminiImagesOptions
    models: Sequence[ServedModel] = [
        *(ServedModel(model, name=MODEL) for model in (*text_to_image.MODELS, *edit_image.MODELS)),
        ServedModel(text_to_image.make_text_to_image("gemini_image", "Gemini: text to picture"), name=MODEL),
        ServedModel(edit_image.make_edit_image("gemini_image_edit", "Gemini: edit a picture"), name=MODEL),
    ]

    def __init__(self, options: GeminiImagesOptions, folders: VendorFolders) -> None:
        del folders  # nothing is kept
        self.options = options
        self._headers = {"x-goog-api-key": options.api_key} if options.api_key else {}

    def most_results(self, model: str) -> int:
        """Return the pictures of one call."""
        del model
        return TERMS.most

    def submit(self, order: Order) -> Flow[Finished | Refused | Failed]:
        """Order one picture and read it from the reply. Several would be several orders that no reply proves."""
        try:
            asked = ask_picture(order, TERMS)
        except Unfit as unfit:
            return unfit.failure
        if (size := sum(file.bytes for file in asked.images)) > MAX_INLINE_BYTES:
            most = f"Gemini takes at most {MAX_INLINE_BYTES >> 20} MB of pictures per order"
            return Failed(UpstreamRejected(f"{most}, and these have {size / 2**20:.1f} MB: send smaller ones."))
        model = quote(order.model.removeprefix("models/"), safe="")
        url, body = f"/models/{model}:generateContent", _write(asked)
        reply = yield Call("POST", url, self._headers, body, seconds=self.options.reply_seconds)
        if reply.status != 200:
            return _classify(reply)
        return _read(reply, order, asked)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return that nothing is known: a result comes with the reply to its order."""
        yield from ()
        return Failed(UpstreamError(GONE, upstream=upstream_reason(None, None, operation.get("id"))))


def _write(asked: PictureOrder) -> dict[str, Any]:
    """Return the body of a call: the prompt first, then the pictures in the caller's order."""
    fields = dict(asked.body)
    parts: list[dict[str, Any]] = [{"text": fields.pop("prompt")}]
    parts += [{"inlineData": {"mimeType": file.content_type, "data": Base64(file)}} for file in asked.images]
    config: dict[str, Any] = {"responseModalities": ["IMAGE"]}
    if "seed" in fields:
        config["seed"] = fields.pop("seed")
    if fields:
        config["imageConfig"] = fields
    return {"contents": [{"role": "user", "parts": parts}], "generationConfig": config}


def _read(reply: Reply, order: Order, asked: PictureOrder) -> Finished | Failed:
    """Return the picture of a reply; a block is also a reply with status 200."""
    answer = reply.decode(_Answer)
    upstream_id = answer.response_id or order.reference
    blocked = as_object(answer.prompt_feedback)
    if reason := blocked.get("blockReason"):
        message = blocked.get("blockReasonMessage")
        return Failed(ContentFiltered(stage="dispatching", upstream=upstream_reason(reason, message, upstream_id)))
    parts = [part for one in answer.candidates[:1] if one.content for part in one.content.parts if not part.thought]
    pictures = [part.inline_data.data for part in parts if part.inline_data is not None]
    if pictures:
        outputs = tuple(Output(Kind.IMAGE, Role.PRIMARY, data) for data in pictures)
        return Finished(upstream_id, Done(outputs, expected=asked.expected), asked.warnings)
    ended = answer.candidates[0] if answer.candidates else _Candidate()
    said = ended.finish_message or " ".join(part.text for part in parts if part.text)
    reason = upstream_reason(ended.finish_reason or None, said or "no picture and no reason", upstream_id)
    return Failed((ContentFiltered if ended.finish_reason in FILTERED else UpstreamError)(upstream=reason))


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order; the delay of a rate limit stands in the error's details."""
    error = as_object((reply.try_decode(dict[str, Any]) or {}).get("error"))
    if reply.status == 429 and reply.retry_after is None:
        return Refused(next(_delays(error.get("details")), None))
    return classify_refusal(reply, upstream_reason(error.get("status") or reply.status, error.get("message")))


def _delays(details: Any) -> Iterator[float]:
    for detail in cast("list[Any]", details) if isinstance(details, list) else ():
        if found := _RETRY_DELAY.fullmatch(str(as_object(detail).get("retryDelay"))):
            yield float(found[1])


VENDOR = GeminiImages
