"""Veo on Vertex AI, as its documents say: tokens, long-running operations, and a bucket of Cloud Storage."""

import asyncio
import json
import re
import time
import uuid
from base64 import b64encode, urlsafe_b64decode
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, make_result, open_base64

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Unclear

PROJECT, LOCATION, BUCKET = "a-project", "us-central1", "a-bucket"
API_KEY = "AIza-0123456789"
EMAIL = f"penstock@{PROJECT}.iam.gserviceaccount.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
STANDARD = "veo-3.1-generate-001"
LIVE = {STANDARD, "veo-3.1-fast-generate-001", "veo-3.1-lite-generate-001"}
MODELS = f"projects/{PROJECT}/locations/{LOCATION}/publishers/google/models"
SUPPORT = "The prompt violates the usage guidelines. Try rephrasing it. Support codes: 58061214, 17301594"
ALLOWED: dict[str, Any] = {
    "durationSeconds": (4, 6, 8),
    "aspectRatio": ("16:9", "9:16"),
    "resolution": ("720p", "1080p"),
    "compressionQuality": ("optimized", "lossless"),
    "personGeneration": ("allow_adult", "dont_allow", "allow_all"),
    "sampleCount": (1, 2, 3, 4),
}
FILES = {"image": "image/", "lastFrame": "image/", "video": "video/mp4"}
"""Inputs of an instance, and the types that each may have."""
TYPES: dict[str, type] = {"generateAudio": bool, "enhancePrompt": bool, "negativePrompt": str, "storageUri": str}
SIZES = {"720p": (1280, 720), "1080p": (1920, 1080)}
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
STATUSES |= {402: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED"}


@cache
def make_key(owner: str) -> rsa.RSAPrivateKey:
    """A throwaway key for each owner, made once."""
    del owner
    return rsa.generate_private_key(65537, 2048)


def write_account(owner: str = "us", **more: Any) -> str:
    """The JSON key of a service account, as Google's console writes it."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "0123456789abcdef",
        "private_key": make_key(owner).private_bytes(*form).decode(),
        "client_email": EMAIL,
        "client_id": "1234",
        **more,
    }
    return json.dumps(account, indent=2)


def trouble(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": STATUSES.get(code, "INTERNAL"), **more}}


class VeoDouble(MediaDouble):
    vendor = "veo"
    credential = "ya29.c.first"
    wrong_credential = {"owner": "a stranger"}
    cases = (
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}),
        Case(
            "vendorb_video_31",
            {
                "prompt": "Zürich im Regen ☂",
                "durationSeconds": 6,
                "aspectRatio": "9:16",
                "compressionQuality": "LOSSLESS",
                "personGeneration": "dont_allow",
            },
        ),
        Case(
            "veo_text_to_video",
            {
                "prompt": "a mill",
                "durationSeconds": 4,
                "negativePrompt": "people",
                "generateAudio": False,
                "enhancePrompt": False,
                "seed": 4294967295,
            },
        ),
    )
    order_call = ("POST", f"/v1/{MODELS}/{STANDARD}:predictLongRunning")
    poll_call = ("POST", f"/v1/{MODELS}/{STANDARD}:fetchPredictOperation")
    links = False
    endings = {
        "rai-all": Verdict("content_filtered"),
        "rai-partial": Verdict(None),
        "empty": Verdict("content_filtered"),
        "support code": Verdict("content_filtered"),
        "3": Verdict("upstream_rejected"),
        "9": Verdict("upstream_rejected"),
        "7": Verdict("upstream_auth"),
        "16": Verdict("upstream_auth"),
        "4": Verdict("upstream_error", retryable=True),
        "8": Verdict("upstream_error", retryable=True),
        "13": Verdict("upstream_error", retryable=True),
        "14": Verdict("upstream_error", retryable=True),
    }
    refusals = {
        "400": Refusal(400, trouble(400), Verdict("upstream_rejected")),
        "400 FAILED_PRECONDITION": Refusal(
            400, trouble(400, status="FAILED_PRECONDITION"), Verdict("upstream_rejected")
        ),
        "400 support code": Refusal(400, trouble(400, SUPPORT, note="no"), Verdict("content_filtered")),
        "402": Refusal(402, trouble(402), Verdict("upstream_unavailable", retryable=True)),
        "403": Refusal(403, trouble(403), Verdict("upstream_auth")),
        "404 retired": Refusal(404, trouble(404), Verdict("upstream_rejected")),
        "no error": Refusal(422, {}, Verdict("upstream_rejected")),
    }
    busy = Refusal(429, trouble(429), Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.expires_in: float = 3600
        self.valid: dict[str, float] = {}  # tokens, and until when
        self.claims: list[dict[str, Any]] = []

    async def forget(self) -> None:
        await super().forget()
        self.expires_in = 3600
        self.claims.clear()

    def settings(self, **more: Any) -> str:
        account = write_account(more.pop("owner", "us"), token_uri=f"{self.url}/token")
        given = {"type": "veo", "base_url": self.url, "service_account": account, "poll_seconds": 0.02, **more}
        return "[vendors.veo]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())

    def revoke(self) -> None:
        """No token that was handed out opens anything any more."""
        self.valid.clear()

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if (request.method, path) == ("POST", "/token"):
            return self._hand_out(request, await request.read())
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        has_key = request.headers.get("x-goog-api-key") == API_KEY and path.startswith("/v1/")
        if not has_key and time.monotonic() > self.valid.get(token, 0.0):
            return answer(401, trouble(401, "Request had invalid authentication credentials."))
        if request.method == "POST" and (found := re.fullmatch(rf"/v1/{MODELS}/([^/:]+):(\w+)", path)):
            return self._operate(found[1], found[2], json.loads(await request.read()))
        if request.method == "GET" and (found := re.fullmatch(r"/storage/v1/b/([^/]+)/o(?:/([^/]+))?", path)):
            return await self._open_bucket(found[1], found[2] and unquote(found[2]), dict(request.rel_url.query))
        return answer(404, trouble(404, "Requested entity was not found."))

    # -- tokens

    def _hand_out(self, request: web.BaseRequest, body: bytes) -> web.Response:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if request.content_type != "application/x-www-form-urlencoded" or form.get("grant_type") != GRANT:
            return answer(400, {"error": "unsupported_grant_type", "error_description": "Invalid grant_type"})
        if problem := self._check_claim(form.get("assertion", "")):
            told = f"{problem}: {form.get('assertion')} of {EMAIL}"  # it says more than it should
            return answer(400, {"error": "invalid_grant", "error_description": told})
        if self.valid:
            self.credential = f"ya29.c.{uuid.uuid4().hex}"
        self.valid[self.credential] = time.monotonic() + self.expires_in
        token = {"access_token": self.credential, "expires_in": self.expires_in, "token_type": "Bearer"}
        return answer(200, token)

    def _check_claim(self, assertion: str) -> str | None:
        """What is wrong with a claim."""
        signed, _, signature = assertion.rpartition(".")
        try:
            public = make_key("us").public_key()
            public.verify(_decode(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            header, claims = (json.loads(_decode(part)) for part in signed.split("."))
        except (ValueError, InvalidSignature):
            return "Invalid JWT Signature."
        if header != {"alg": "RS256", "typ": "JWT", "kid": "0123456789abcdef"}:
            return "Invalid JWT header"
        self.claims.append(claims)
        now, begin, end = time.time(), claims["iat"], claims["exp"]
        if (claims["iss"], claims["scope"], claims["aud"]) != (EMAIL, SCOPE, f"{self.url}/token"):
            return "Invalid JWT: iss, scope or aud"
        return None if begin <= now < end <= begin + 3600 else "Invalid JWT: iat and exp"

    # -- Vertex AI

    def _operate(self, model: str, verb: str, body: dict[str, Any]) -> web.Response:
        if model not in LIVE:
            return answer(404, trouble(404, f"Publisher Model `{MODELS}/{model}` was not found."))
        if verb == "predictLongRunning":
            return self._order(model, body)
        order = self.orders.get(body["operationName"].removeprefix(f"{MODELS}/{model}/operations/"))
        if verb != "fetchPredictOperation" or set(body) != {"operationName"} or order is None:
            return answer(404, trouble(404, "The operation was not found."))
        order.polls += 1
        name = {"name": body["operationName"]}
        if not order.done:
            return answer(200, name if order.polls == 1 else name | {"done": False})
        return answer(200, name | {"done": True} | self._end(order))

    def _order(self, model: str, body: dict[str, Any]) -> web.Response:
        if problem := self._check_order(body):
            return answer(400, trouble(400, problem))
        if self.open_orders >= 10:
            return answer(429, trouble(429, "Quota exceeded."), {"Retry-After": "1"})
        given, instance = body["parameters"], body["instances"][0]
        if problem := self._check_files(instance, given):
            return answer(400, trouble(400, problem))
        size = SIZES[given.get("resolution", "720p")]
        width, height = size if given.get("aspectRatio", "16:9") == "16:9" else size[::-1]
        order = self.place(
            body, Wish("video", width, height, 7 if "video" in instance else given.get("durationSeconds", 8))
        )
        return answer(200, {"name": f"{MODELS}/{model}/operations/{order.id}"})

    def _check_order(self, body: dict[str, Any]) -> str | None:
        """What is wrong with an order; names and types are exact."""
        instances, given = body.get("instances"), body.get("parameters")
        if set(body) != {"instances", "parameters"} or not isinstance(instances, list) or len(instances) != 1:
            return "Invalid JSON payload received."
        if not set(instances[0]) <= {"prompt", "referenceImages", *FILES}:
            return "Unknown field in the instance."
        prompt = instances[0].get("prompt", "" if FILES.keys() & instances[0].keys() else None)
        if not isinstance(prompt, str) or not (prompt or FILES.keys() & instances[0].keys()):
            return "Prompt is required."
        for name, value in given.items():
            whole = type(value) is int and 0 <= value < 1 << 32
            if not (
                value in ALLOWED.get(name, ())
                or type(value) is TYPES.get(name)
                or (name == "seed" and whole)
                or name == "resizeMode"
            ):
                return f"Unknown or invalid parameter `{name}`."
        return self._check_place(given.get("storageUri"))

    def _check_files(self, instance: dict[str, Any], given: dict[str, Any]) -> str | None:
        """What is wrong with the inputs: one kind of them in a call, inline, of a type that Veo reads."""
        references = instance.get("referenceImages", [])
        kinds = [bool(references), "image" in instance, "video" in instance]
        if sum(kinds) > 1 or ("lastFrame" in instance and "image" not in instance):
            return "The inputs exclude each other."
        if ("resizeMode" in given) != ("image" in instance) or given.get("resizeMode", "pad") not in ("pad", "crop"):
            return "resizeMode belongs to an image."
        if references and (given.get("durationSeconds") != 8 or len(references) > 3 or not instance.get("prompt")):
            return "At most 3 references, 8 seconds and a prompt are needed."
        if "video" in instance and {"durationSeconds", "aspectRatio", "resolution"} & given.keys():
            return "An extension has the shape of its source."
        if any(set(each) != {"image", "referenceType"} or each["referenceType"] != "asset" for each in references):
            return "Invalid reference."
        files = [(name, FILES[name], instance[name]) for name in FILES if name in instance]
        files += [(f"referenceImages.{place}", "image/", each["image"]) for place, each in enumerate(references)]
        for slot, kind, file in files:
            data = open_base64(file.get("bytesBase64Encoded"))
            if set(file) != {"bytesBase64Encoded", "mimeType"} or data is None or not file["mimeType"].startswith(kind):
                return f"Invalid file `{slot}`."
            self.receive(slot, data)
        return None

    def _check_place(self, place: str | None) -> str | None:
        return None if place is None else "The service account may not write there."

    def _end(self, order: Placed) -> dict[str, Any]:
        reasons = [SUPPORT.replace("prompt", "generated video")]
        match order.plan.ending:
            case "ok" | "corrupt":
                told: dict[str, Any] = {"raiMediaFilteredCount": 0, "videos": [self._video(order)]}
            case "rai-partial":
                told = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": reasons, "videos": [self._video(order)]}
            case "rai-all":
                told = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": reasons}
            case "empty":
                told = {"raiMediaFilteredCount": 0, "videos": []}
            case "support code":
                return {"error": {"code": 3, "message": SUPPORT, "details": []}}
            case code:
                return {"error": {"code": int(code), "message": f"{self.credential} see {self.url}", "details": []}}
        kind = "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse"
        return {"response": {"@type": kind, **told}}

    def _video(self, order: Placed) -> dict[str, Any]:
        return {"bytesBase64Encoded": b64encode(_data(order)).decode(), "mimeType": "video/mp4"}

    # -- Cloud Storage

    async def _open_bucket(self, bucket: str, name: str | None, query: dict[str, str]) -> web.Response:
        return answer(403, trouble(403, f"{EMAIL} does not have storage access to {bucket}, {name}, {query}."))


class VeoInlineDouble(VeoDouble):
    mode = "inline"


class VeoBucketDouble(VeoDouble):
    """Results are written to a bucket, each into the folder that its order names."""

    mode = "bucket"
    finds = True

    def settings(self, **more: Any) -> str:
        return super().settings(**{"storage_uri": f"gs://{BUCKET}/the results/ü+&%", **more})

    def _check_place(self, place: str | None) -> str | None:
        found = re.fullmatch(rf"gs://{BUCKET}/the results/ü\+&%/job_\w+-\d+/", place or "")
        return None if found else "The service account may not write there."

    def _object(self, order: Placed) -> str:
        folder = order.body["parameters"]["storageUri"].removeprefix(f"gs://{BUCKET}/")
        return f"{folder}{order.id[:8]}/sample_0.mp4"

    def _video(self, order: Placed) -> dict[str, Any]:
        return {"gcsUri": f"gs://{BUCKET}/{self._object(order)}", "mimeType": "video/mp4"}

    async def _open_bucket(self, bucket: str, name: str | None, query: dict[str, str]) -> web.Response:
        if bucket != BUCKET:
            return answer(404, trouble(404, "The specified bucket does not exist."))
        if name is None:
            return answer(200, {"kind": "storage#objects"} | self._list(query["prefix"]))
        for order in self.orders.values():
            if self._object(order) == name and order.is_over() and query == {"alt": "media"}:
                return web.Response(body=await asyncio.to_thread(_data, order), content_type="video/mp4")
        return answer(404, trouble(404, "No such object."))

    def _list(self, prefix: str) -> dict[str, Any]:
        """Whoever lists a folder instead of polling must wait as well."""
        names = []
        for order in self.orders.values():
            if self._object(order).startswith(prefix):
                order.polls += 3
                names += [self._object(order)] if order.done and order.plan.ending in ("ok", "corrupt") else []
        items = [{"kind": "storage#object", "bucket": BUCKET, "name": name, "size": "1234"} for name in names]
        return {"items": [{"name": f"{prefix}a note.txt"}, *items]} if items else {}


DOUBLES = (VeoInlineDouble, VeoBucketDouble)


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _data(order: Placed) -> bytes:
    return b"not what it should be" * 50 if order.plan.ending == "corrupt" else make_result(order.wish)


# -- plain data; with an API key, as every reply is then one to the verb itself


def operation(**more: Any) -> dict[str, Any]:
    return {"name": f"{MODELS}/{STANDARD}/operations/1", **more}


def done(**told: Any) -> dict[str, Any]:
    return operation(done=True, response=told)


def failed(code: Any, message: Any = "no") -> dict[str, Any]:
    return operation(done=True, error={"code": code, "message": message, "details": []})


VIDEO = {
    "prompt": "a mill",
    "durationSeconds": 4,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "optimized",
    "personGeneration": "allow_adult",
}
SAMPLE = Sample(
    options={"type": "veo", "api_key": "AIza-1", "project": PROJECT},
    operation={"id": "1", "path": f"/v1/{MODELS}/{STANDARD}", "name": f"{MODELS}/{STANDARD}/operations/1"},
    replies={
        "submit": [
            (200, operation(), Accepted),
            (429, trouble(429), Refused),
            (400, trouble(400), Failed),
            (400, trouble(400, SUPPORT), Failed),
            (401, trouble(401), Failed),
            (402, trouble(402), Failed),
            (403, trouble(403), Failed),
            (404, trouble(404), Failed),
            (404, [], Failed),
            (500, trouble(500), Unclear),
            (503, trouble(503), Unclear),
            (504, trouble(504), Unclear),
            (200, {}, Unclear),
            (200, {"name": "operations/"}, Unclear),
        ],
        "find": [(200, {}, LookupUnsupported)],
        "poll": [
            (200, operation(), Running),
            (200, operation(done=False), Running),
            (200, operation(metadata={"a word": "of tomorrow"}), Running),
            (200, done(videos=[{"gcsUri": "gs://a/b.mp4", "mimeType": "video/mp4"}]), Done),
            (200, done(videos=[{"gcsUri": "gs://a/ü b.mp4"}, {"gcsUri": None}], raiMediaFilteredCount=1), Done),
            (200, done(videos=[{"gcsUri": "gs://a/"}, {}, {"bytesBase64Encoded": ""}]), Failed),
            (200, done(raiMediaFilteredCount=1, raiMediaFilteredReasons=[SUPPORT]), Failed),
            (200, done(raiMediaFilteredReasons=["no"]), Failed),
            (200, done(raiMediaFilteredCount=2), Failed),
            (200, done(raiMediaFilteredCount="2", videos=None), Failed),
            (200, done(videos=[]), Failed),
            (200, operation(done=True), Failed),
            (200, failed(3), Failed),
            (200, failed(8, None), Failed),
            (200, failed("odd", [1]), Failed),
            (200, operation(done=True, error={}), Failed),
            (200, done(videos=[7]), Unclear),
            (200, operation(done="yes"), Unclear),
            (401, trouble(401), Unclear),
            (404, trouble(404), Failed),
            (429, trouble(429), Unclear),
            (503, trouble(503), Unclear),
        ],
        "cancel": [(200, {}, bool)],
    },
    orders=[
        (STANDARD, VIDEO),
        (STANDARD, {**VIDEO, "negativePrompt": "people", "seed": 7, "generateAudio": False, "enhancePrompt": True}),
    ],
)
