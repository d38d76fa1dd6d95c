"""Definitions of the tools that a key may use. Each kind of model has a tool of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from penstock.catalog.params import Params, as_object
from penstock.domain.api_keys import ApiKey, Scope
from penstock.offers.offer import Offer, Offers
from penstock.web.facades.mcp import arguments

GENERATE: Final = "generate_"
"""Beginning of the names of the tools that generate; the kind of the models follows."""
MAX_SCHEMA_BYTES: Final = 12_000
"""Size of all schemas of a kind up to which its tool has them. Larger ones would fill an agent's context."""
NEUTRAL: Final = (
    "Params of the model. Names that many services use are taken, too: `prompt`, `image` (an https or `data:` URL, "
    "a `file_…` token, a `job_…` whose output is the image, or the `penstock://` URI of an output), `duration`, "
    "`aspect_ratio`, `resolution`, `seed`."
)
WHAT: Final = {"3d": "3D models", "image": "images", "video": "videos", "audio": "sound", "text": "text"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: the scope that it needs, its arguments, and what clients read about it."""

    scope: Scope
    arguments: type[Params]
    title: str
    description: str
    reads_only: bool = True

    def describe(self, name: str) -> dict[str, Any]:
        """Return the definition as `tools/list` answers it."""
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "inputSchema": msgspec.json.decode(_encode_schema(self.arguments)),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads_only,
                "destructiveHint": name == "cancel",
                "openWorldHint": False,
            },
        }


@lru_cache(64)
def _encode_schema(kind: type[Params]) -> bytes:
    """Return the JSON Schema of a tool's arguments. Making it takes milliseconds, so it is kept."""
    schema = kind.model_json_schema()
    schema.pop("description", None)
    schema.pop("title", None)
    return msgspec.json.encode(schema)


TOOLS: Final[Mapping[str, Tool]] = {
    "list_models": Tool(
        Scope.READ, arguments.ListModels, "List models", "List the models that you may use, with kind, price and tool."
    ),
    "describe_model": Tool(
        Scope.READ,
        arguments.DescribeModel,
        "Describe a model",
        "Get one model with the JSON Schema of its params, its defaults, an example and its price.",
    ),
    "estimate": Tool(
        Scope.GENERATE,
        arguments.Wanted,
        "Estimate the cost",
        "Check the params of a generation and get its cost and duration. It generates nothing and costs nothing.",
    ),
    "job_status": Tool(
        Scope.READ,
        arguments.JobStatus,
        "Get a job",
        "Get a job by its id. With `wait_seconds` the answer comes when the job is done or the time has passed.",
    ),
    "cancel": Tool(
        Scope.GENERATE,
        arguments.OfJob,
        "Cancel a job",
        "Cancel a job. Canceling again, or too late, changes nothing and returns the job.",
        reads_only=False,
    ),
    "get_asset": Tool(
        Scope.READ,
        arguments.GetAsset,
        "Get an output",
        "Get a link to an output of a job. Pictures come with a small preview, short texts as they are.",
    ),
    "upload": Tool(
        Scope.GENERATE,
        arguments.Upload,
        "Upload a file",
        "Upload a small file. Its `file_token` can then be used in params. Files with an https URL need no upload.",
        reads_only=False,
    ),
}


def tool_of(kind: str) -> str:
    """Return the name of the tool that generates with models of this kind."""
    return f"{GENERATE}{kind}"


def offers_of(offers: Offers, key: ApiKey) -> list[Offer]:
    """Return the models that a key may use."""
    return [offer for name, offer in offers.by_model.items() if key.allows_model(name)]


def describe_tools(offers: Offers, key: ApiKey, *, has_tasks: bool = False) -> list[dict[str, Any]]:
    """Return the definitions of all tools that a key may use. With tasks, those that generate say so."""
    own = offers_of(offers, key)
    found = [tool.describe(name) for name, tool in TOOLS.items() if key.allows(tool.scope)]
    if key.allows(Scope.GENERATE):
        kinds = sorted({offer.kind for offer in own})
        more = {"execution": {"taskSupport": "optional"}} if has_tasks else {}
        found += [_describe_kind(kind, [offer for offer in own if offer.kind == kind]) | more for kind in kinds]
    return found


def generating_tool(kind: str) -> Tool:
    """Return the tool that generates with models of this kind."""
    what = WHAT.get(kind, kind)
    return Tool(
        Scope.GENERATE,
        arguments.Generate,
        f"Generate {what}",
        f"Generate {what} with one of the models listed at `model`. It costs money where the model has a price. "
        "If the job is not done in time, the result names it: call `job_status` with its id.",
        reads_only=False,
    )


def _describe_kind(kind: str, offers: list[Offer]) -> dict[str, Any]:
    found = generating_tool(kind).describe(tool_of(kind))
    properties = found["inputSchema"]["properties"]
    titles = "; ".join(f"`{offer.id}`: {offer.title}" for offer in offers)
    properties["model"] = {"type": "string", "enum": [offer.id for offer in offers], "description": titles}
    properties["params"] = _describe_params(offers)
    found["inputSchema"]["required"] = ["model", "params"]
    return found


def _describe_params(offers: list[Offer]) -> dict[str, Any]:
    """Return the schema of `params`: with those of all models if they are short, else with their names."""
    schemas = [_embed(offer.model.schema, f"anyOf/{place}", offer.id) for place, offer in enumerate(offers)]
    names = "; ".join(f"`{offer.id}`: {', '.join(_sign(offer.model.schema))}" for offer in offers)
    described: dict[str, Any] = {"type": "object", "description": f"{NEUTRAL} Names by model, * is required: {names}."}
    if sum(len(msgspec.json.encode(schema)) for schema in schemas) <= MAX_SCHEMA_BYTES:
        return described | {"anyOf": [*schemas, {"type": "object", "title": "neutral names"}]}
    return described | {"description": f"{described['description']} `describe_model` returns the schema of a model."}


def _embed(schema: Mapping[str, Any], place: str, title: str) -> dict[str, Any]:
    """Return a model's schema with its references pointing to their new place in the tool's schema."""
    text = msgspec.json.encode(schema).decode()
    for name in ("$defs", "definitions"):
        text = text.replace(f'"#/{name}/', f'"#/properties/params/{place}/{name}/')
    return {**msgspec.json.decode(text), "title": title}


def _sign(schema: Mapping[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    return [f"{name}*" if name in required else name for name in as_object(schema.get("properties"))]
