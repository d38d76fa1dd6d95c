"""One suite for every vendor there is: plain data in, the contract's types out, and no reply that breaks a job."""

import importlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from doubles.media import Sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pydantic import ValidationError
from store.sample_jobs import make_attempt, make_job

from penstock.catalog import known_models
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import JobError
from penstock.domain.jobs import Job
from penstock.domain.prices import Price
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.chat import ChatOptions
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Call,
    Done,
    Failed,
    Finished,
    GenerationVendor,
    LookupUnsupported,
    NotSent,
    Order,
    Output,
    Refused,
    Running,
    Similar,
    Unclear,
    VendorFolders,
    VendorOptions,
)
from penstock.vendors import load_vendor, vendor_names

FILES = sorted(path.stem for path in Path(__file__).parents[1].joinpath("doubles").glob("*.py") if path.stem != "media")
"""The vendors that have a double: each tells its own sample."""
GENERATION = sorted(name for name in vendor_names() if not issubclass(load_vendor(name).options_type, ChatOptions))
VERBS = {
    "submit": (Accepted, Finished, Refused, Failed),
    "find": (Accepted, Similar, Absent, LookupUnsupported),
    "poll": (Running, Done, Failed),
    "cancel": (bool,),
}
SYNCHRONOUS = {"openai_images", "gemini_images"}
"""Vendors whose reply to an order is its result."""
VIDEO = {
    "prompt": "a mill",
    "durationSeconds": 4,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "optimized",
    "personGeneration": "allow_adult",
}
MODEL = {"model_seed": 7, "texture": True, "pbr": True, "model_version": "v3.1-20260211"}


def sim_order(status: str, **fields: Any) -> dict[str, Any]:
    told = {"progress": None, "queue_position": None, "eta_seconds": None, "outputs": [], "seed": None}
    return {"id": "sim-1", "status": status, **told, **fields}


BOTH = [("vendorb_video_31", VIDEO), ("vendora_image_to_model", MODEL)]
MADE = {"name": "video.mp4", "kind": "video", "role": "primary"}


def derive_sample(name: str) -> Sample:
    """What can be said of a vendor that has no double: it must take whatever replies come."""
    kind = load_vendor(name)
    options = {"type": name, "api_key": "k:k", "base_url": "http://127.0.0.1:1"}
    vendor = kind(kind.options_type.model_validate(options), VendorFolders(Path("nowhere"), Path("nowhere")))
    orders = []
    for served in vendor.models:
        example = {key: value for key, value in served.model.example.items() if key != "file"}
        orders.append((served.name or served.model.id, served.model.read(example, "")[0] or example))
    return Sample(options, {"id": "order-1"}, {verb: [] for verb in VERBS}, orders)


SAMPLES = {
    "embedded": Sample(
        options={"type": "embedded"},
        operation={"id": "job_1-1", "version": None},
        replies={
            "submit": [
                (201, {"id": "job_1-1"}, Accepted),
                (501, {"error": {"code": "not_installed", "message": "install it"}}, Failed),
                (500, {}, Unclear),
            ],
            "find": [(200, {"status": "running"}, Accepted), (404, {}, Absent), (500, {}, Unclear)],
            "poll": [
                (200, {"status": "running", "progress": 0.5, "eta_seconds": 3}, Running),
                (200, {"status": "a word of tomorrow"}, Running),
                (200, {"status": "succeeded", "outputs": [MADE], "seed": 7, "warnings": ["plain"]}, Done),
                (200, {"status": "failed", "error": {"code": "unable", "message": "no picture"}}, Failed),
                (200, {"status": "failed", "error": {"code": "crashed", "message": "died"}}, Failed),
                (200, {"status": "canceled"}, Failed),
                (200, {"status": "succeeded", "outputs": [MADE | {"kind": "song"}]}, Unclear),
                (200, {"status": "running", "progress": "half"}, Unclear),
                (404, {}, Failed),
                (500, {}, Unclear),
            ],
            "cancel": [(200, {}, bool), (404, {}, bool), (503, {}, Unclear)],
        },
        orders=BOTH,
    ),
    "sim": Sample(
        options={"type": "sim", "base_url": "http://127.0.0.1:1", "api_key": "k"},
        operation={"id": "sim-1"},
        replies={
            "submit": [
                (201, {"id": "sim-1"}, Accepted),
                (429, {"error": {"code": "busy"}}, Refused),
                (400, {"error": {"code": "bad"}}, Failed),
                (401, {"error": None}, Failed),
                (500, {}, Unclear),
            ],
            "find": [
                (200, {"orders": [{"id": "sim-1"}]}, Accepted),
                (200, {"orders": []}, Absent),
                (501, {}, LookupUnsupported),
                (503, {}, Unclear),
            ],
            "poll": [
                (200, sim_order("queued", queue_position=3), Running),
                (200, sim_order("running", progress=0.5, eta_seconds=3), Running),
                (200, sim_order("a word of tomorrow"), Running),
                (200, sim_order("succeeded", outputs=[{"kind": "video", "role": "primary", "path": "/x"}]), Done),
                (200, sim_order("succeeded"), Failed),
                (200, sim_order("failed", error={"code": "x", "message": "y"}), Failed),
                (200, sim_order("filtered"), Failed),
                (200, sim_order("canceled"), Failed),
                (200, sim_order("succeeded", outputs=[{"kind": "song", "role": "primary", "path": "/x"}]), Unclear),
                (200, sim_order("running", progress="half"), Unclear),
                (404, {}, Failed),
                (429, {}, Unclear),
            ],
            "cancel": [(200, {}, bool), (409, {}, bool), (503, {}, Unclear), (429, {}, Unclear)],
        },
        orders=BOTH,
    ),
    **{name: importlib.import_module(f"doubles.{name}").SAMPLE for name in FILES},
}
SAMPLES |= {name: derive_sample(name) for name in GENERATION if name not in SAMPLES}
ORDERS = [
    pytest.param(name, order, id=f"{name}-{order[0]}") for name, sample in SAMPLES.items() for order in sample.orders
]


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


class Canned:
    """An upstream that says one thing to whatever it is asked."""

    def __init__(self, status: int, body: bytes) -> None:
        self.answers = [(status, {"content-type": "application/json"}, body)] * 20

    def answer(self, *_request: Any) -> tuple[int, Mapping[str, str], bytes]:
        return self.answers.pop()  # a flow that never ends runs dry, which is an error


def make_vendor(name: str, folder: Path = Path("nowhere")) -> GenerationVendor:
    kind = load_vendor(name)
    return kind(kind.options_type.model_validate(SAMPLES[name].options), VendorFolders(folder, folder / "weights"))


def flow_of(vendor: GenerationVendor, name: str, verb: str, order: tuple[str, Mapping[str, Any]] | None = None) -> Any:
    if verb in ("poll", "cancel"):
        return getattr(vendor, verb)(SAMPLES[name].operation)
    model, params = order or SAMPLES[name].orders[0]
    return getattr(vendor, verb)(Order("job_1-1", model, params))


async def hear(vendor: GenerationVendor, name: str, verb: str, status: int, body: bytes) -> Any:
    """What a verb makes of a reply: its result, or the trouble."""
    vendor.upstream = Canned(status, body)
    try:
        return await Exchange(no_file).drive(name, vendor, verb, flow_of(vendor, name, verb))
    except (NotSent, Unclear) as error:
        return error


def check_done(done: Done) -> None:
    assert done.outputs
    for output in done.outputs:
        assert isinstance(output, Output)
        assert isinstance(output.download, str) or output.download.method == "GET"
    assert all(isinstance(warning, str) for warning in done.warnings)
    job = make_job(seed=done.seed)
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def check_storable(result: Any) -> None:
    """Whatever a vendor says ends up in a job's row: it must come out as it went in."""
    match result:
        case Accepted(upstream_id, operation):
            attempt = make_attempt("job_1", upstream_id=upstream_id, operation=operation)
            job = make_job(attempts=(attempt,))
            assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job
        case Running():
            msgspec.json.encode(result)
            for told in (result.progress, result.queue_position, result.eta_seconds, result.poll_after):
                assert told is None or (isinstance(told, int | float) and not isinstance(told, bool))
        case Finished(upstream_id, done):
            assert upstream_id
            check_done(done)
        case Done():
            check_done(result)
        case Failed(error):
            assert isinstance(error, JobError)
            json.dumps(error.body("req_1"))
            told = (error.upstream or {}).values()
            assert all(text is None or isinstance(text, str) for text in told)
        case Refused(retry_after):
            assert retry_after is None or retry_after >= 0


names = pytest.mark.parametrize("name", GENERATION)
verbs = pytest.mark.parametrize("verb", VERBS)


@names
def test_a_vendor_is_what_the_contract_says(name, tmp_path):
    vendor = make_vendor(name, tmp_path / "vendor")
    assert issubclass(vendor.options_type, VendorOptions)
    assert vendor.options.type == name
    assert vendor.lookup_seconds >= 0
    assert isinstance(vendor.reads_objects, bool)
    assert isinstance(vendor.declares, bool)
    assert vendor.batch >= 0
    assert (vendor.upstream is None) == bool(vendor.options.base_url)  # with a base_url it speaks HTTP
    assert not (tmp_path / "vendor").exists(), "making a vendor touches no disk"


@names
def test_its_settings_are_checked(name):
    kind, given_options = load_vendor(name), SAMPLES[name].options
    for wrong in ({"no_such_setting": 1}, {"poll_seconds": "soon"}, {"max_concurrent": "many"}, {"base_url": 7}):
        with pytest.raises(ValidationError):
            kind.options_type.model_validate({**given_options, **wrong})


@names
def test_it_serves_known_models_only(name):
    vendor = make_vendor(name)
    for served in vendor.models:
        assert served.model == known_models().get(served.model.id, served.model)
        assert served.price is None or isinstance(served.price, Price)
    ids = [served.model.id for served in vendor.models]
    assert len(ids) == len(set(ids))
    assert ids or vendor.declares


@verbs
@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_a_verb_is_a_flow_of_plain_calls(name, verb, order):
    vendor = make_vendor(name)
    flow = flow_of(vendor, name, verb, order)
    assert inspect.isgenerator(flow)
    call = next(flow, None)
    flow.close()
    if call is None:
        needless = ("find", "cancel", "poll") if name in SYNCHRONOUS else ("find", "cancel")
        assert verb in needless, "only what a vendor cannot do needs no call"
        return
    assert isinstance(call, Call)
    assert call.method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    assert call.url.startswith(("/", "http://", "https://"))
    assert call.seconds > 0
    assert all(isinstance(value, str) for pair in call.headers.items() for value in pair)
    msgspec.json.encode(call.json)
    again = next(flow_of(vendor, name, verb, order))
    assert again == call, "the same order makes the same call: a flow keeps no state"


TOLD = [
    pytest.param(name, verb, *reply, id=f"{name}-{verb}-{number}")
    for name, sample in SAMPLES.items()
    for verb, replies in sample.replies.items()
    for number, reply in enumerate(replies)
]


@pytest.mark.parametrize(("name", "verb", "status", "body", "expected"), TOLD)
async def test_it_understands_its_vendors_replies(name, verb, status, body, expected):
    result = await hear(make_vendor(name), name, verb, status, json.dumps(body).encode())
    assert isinstance(result, expected), result
    check_storable(result)


anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
statuses = some.sampled_from([200, 201, 202, 204, 301, 400, 401, 403, 404, 409, 422, 429, 500, 501, 502, 503])


@names
@verbs
@given(data=some.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_reply_breaks_it(name, verb, data):
    """A known reply with anything in place of one of its values, or anything at all."""
    known = [some.just((status, body)) for status, body, _ in SAMPLES[name].replies[verb]]
    status, body = data.draw(some.one_of(*known, some.tuples(statuses, anything)))
    if isinstance(body, dict) and body:
        body = body | {data.draw(some.sampled_from(sorted(body))): data.draw(anything)}
    result = await hear(make_vendor(name), name, verb, status, json.dumps(body).encode())
    assert isinstance(result, (*VERBS[verb], NotSent, Unclear)), result
    check_storable(result)


def test_the_verbs_here_are_the_contracts():
    for verb, types in VERBS.items():
        flow = inspect.signature(getattr(GenerationVendor, verb)).return_annotation
        result = get_args(flow)[2]
        assert set(get_args(result) or (result,)) == set(types)
