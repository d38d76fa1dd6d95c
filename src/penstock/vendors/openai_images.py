"""`openai_images`: pictures by OpenAI's Images API, and by self-hosted servers that speak it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec
from pydantic import Field

from penstock.catalog import edit_image, text_to_image
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamUnavailable
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.films import Unfit, expect_kept
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    Done,
    Failed,
    Finished,
    Flow,
    Form,
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
from penstock.vendor_api.pictures import (
    ParamTerm,
    PictureOrder,
    PictureTerms,
    PixelTerms,
    ask_picture,
)
from penstock.vendor_api.replies import NO_CREDIT, classify_refusal, fail_empty, upstream_reason

MODEL: Final = "gpt-image-2"
PLAIN: Final = ("negative_prompt", "seed", "quality", "background", "output_format")
"""Params that are sent under our own names, to servers that take them."""
FILTERED: Final = {"moderation_blocked", "content_policy_violation", "image_generation_user_error", "content_filter"}
NO_MONEY: Final = {"insufficient_quota", "billing_hard_limit_reached"}

Server = Literal["openai", "localai", "sglang", "vllm_omni", "sd_cpp", "other"]
TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("quality", "background", "output_format"),
    "localai": ("negative_prompt",),
    "sglang": ("negative_prompt", "seed", "quality", "background", "output_format"),
    "vllm_omni": ("negative_prompt", "seed"),
    "sd_cpp": ("output_format",),
    "other": (),
}
"""Params that each server takes besides prompt, n and size. Only OpenAI refuses what it does not know."""
WITHOUT_EDITS: Final = {"localai"}


def _write_size(width: int, height: int) -> dict[str, str]:
    return {"size": f"{width}x{height}"}


OPENAI_SIZES: Final = PixelTerms(_write_size, step=16, sides=(16, 3840), pixels=(655_360, 8_294_400), most_ratio=3.0)
ANY_SIZE: Final = PixelTerms(_write_size)


class OpenAIImagesOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `openai_images`."""

    base_url: str = Field(
        default="https://api.openai.com/v1", description="what the path of an endpoint is appended to"
    )
    server: Server = Field(default="openai", description="the server that speaks the API, which decides what is sent")
    takes: frozenset[Literal["negative_prompt", "seed", "quality", "background", "output_format"]] | None = Field(
        default=None, description="params that it takes besides prompt, n and size; default: by `server`"
    )
    edits: bool | None = Field(default=None, description="whether it has `/images/edits`; default: by `server`")
    masks: bool | None = Field(
        default=None,
        description="whether it takes a mask that is transparent where to paint; default: only OpenAI does",
    )
    moderation: Literal["auto", "low"] | None = Field(default=None, description="sent as `moderation`, to OpenAI only")
    organization: str | None = Field(default=None, description="sent as `OpenAI-Organization`")
    project: str | None = Field(default=None, description="sent as `OpenAI-Project`")
    max_concurrent: int = Field(default=10, ge=1, description="how many pictures it makes at once")
    reply_seconds: float = Field(default=600.0, gt=0, description="timeout of a whole order, as it answers at the end")


# -- replies


class _Picture(msgspec.Struct):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(msgspec.Struct):
    data: list[_Picture]


class OpenAIImages(GenerationDefaults):
    """Orders whose reply is the result. The vendor keeps nothing, so an order whose reply is lost cannot be found."""

    options_type: ClassVar[type[VendorOptions]] = OpenAIImagesOptions
    models: Sequence[ServedModel] = [
        *(ServedModel(model, name=MODEL) for model in (*text_to_image.MODELS, *edit_image.MODELS)),
        ServedModel(text_to_image.make_text_to_image("openai_image", "GPT Image: text to picture"), name=MODEL),
        ServedModel(edit_image.make_edit_image("openai_image_edit", "GPT Image: edit a picture"), name=MODEL),
    ]

    def __init__(self, options: OpenAIImagesOptions, folders: VendorFolders) -> None:
        del folders  # nothing is kept
        self.options = options
        self._is_openai = options.server == "openai"
        given = {
            "authorization": options.api_key and f"Bearer {options.api_key}",
            "openai-organization": options.organization,
            "openai-project": options.project,
        }
        self._headers = {name: value for name, value in given.items() if value}
        self._terms = _make_terms(options)

    def submit(self, order: Order) -> Flow[Accepted | Finished | Refused | Failed]:
        """Order the pictures and read them from the reply."""
        try:
            asked = ask_picture(order, self._terms)
        except Unfit as unfit:
            return unfit.failure
        reply = yield self._ask(order, asked)
        if reply.status != 200:
            return self._classify(reply)
        return _read(reply, order, asked)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the result of a server that answered with links instead of pictures; it needs no call."""
        yield from ()
        outputs = tuple(_output(Call("GET", url, self._headers, seconds=300)) for url in operation["urls"])
        return expect_kept(Done(outputs), operation)

    def _ask(self, order: Order, asked: PictureOrder) -> Call:
        """Return the one call of an order: pictures go to the endpoint of edits."""
        body = {"model": order.model, **asked.body}
        seconds = self.options.reply_seconds
        match asked.images:
            case [first, *others]:
                name = "image[]" if others else "image"
                masks = [("mask", asked.mask)] if asked.mask else []
                fields = {key: str(value) for key, value in body.items()}
                form = Form(name, first, fields, (*((name, file) for file in others), *masks))
                return Call("POST", "/images/edits", self._headers, form=form, seconds=seconds)
            case _:
                return Call("POST", "/images/generations", self._headers, body, seconds=seconds)

    def _classify(self, reply: Reply) -> Refused | Failed:
        """Classify a refused order; raise `Unclear` for a failure after which it may have been billed."""
        fault = read_fault(reply)
        reason = upstream_reason(fault.code or reply.status, fault.message)
        if fault.code in FILTERED and 400 <= reply.status < 500:
            return Failed(ContentFiltered(stage="generating", upstream=reason))
        if fault.code in NO_MONEY:
            return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
        if reply.status == 503 and not self._is_openai:  # it is loading the model, and bills nobody
            return Refused(reply.retry_after)
        return classify_refusal(reply, reason)


def _make_terms(options: OpenAIImagesOptions) -> PictureTerms:
    """Return what the server of these settings takes."""
    is_openai = options.server == "openai"
    takes = TAKES[options.server] if options.takes is None else tuple(sorted(options.takes))
    edits = options.server not in WITHOUT_EDITS if options.edits is None else options.edits
    masks = is_openai if options.masks is None else options.masks
    fixed = {"moderation": options.moderation} if is_openai and options.moderation else {}
    return PictureTerms(
        vendor="OpenAI" if is_openai else "this server",
        terms={name: ParamTerm(name) for name in ("prompt", "n", *takes)},
        size=OPENAI_SIZES if is_openai else ANY_SIZE,
        images="image" if edits else "",
        most_images=16 if edits else 0,
        mask="mask" if edits and masks else "",
        fixed=fixed if is_openai else {"response_format": "b64_json"},
    )


def _read(reply: Reply, order: Order, asked: PictureOrder) -> Accepted | Finished | Failed:
    """Return the pictures of a reply, or the links to them if the server keeps them."""
    upstream_id = reply.headers.get("x-request-id") or order.reference
    pictures = reply.decode(_Pictures).data
    inline = [picture.b64_json for picture in pictures if picture.b64_json]
    if inline:
        result = Done(tuple(_output(text) for text in inline), expected=asked.expected)
        return Finished(upstream_id, result, asked.warnings)
    urls = [picture.url for picture in pictures if picture.url]
    if not urls:
        return fail_empty(upstream_id, UpstreamError)
    return Accepted(upstream_id, {"urls": urls, "expected": asked.expected.kept}, asked.warnings)


def _output(source: Call | str) -> Output:
    return Output(Kind.IMAGE, Role.PRIMARY, source)


VENDOR = OpenAIImages
