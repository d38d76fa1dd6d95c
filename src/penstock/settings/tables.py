"""Every setting with its type, default and meaning, read once: command line over environment over TOML file."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from platformdirs import user_data_dir
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from penstock.domain.people.sign_in import SessionPolicy
from penstock.settings.content_log import ContentLogTable
from penstock.settings.guardrails import GuardrailTable
from penstock.settings.live_limits import LIVE_LIMITS, find_written, split_limit, with_limits
from penstock.settings.prices import AnyPrice, PriceEntry
from penstock.settings.problems import SettingsError, Source, explain, nearest, reject
from penstock.settings.sign_in import Providers, Sessions
from penstock.settings.sources import gather, map_texts
from penstock.settings.table import Table
from penstock.settings.values import (
    ADDRESS,
    BUILT_IN,
    DAY,
    HOUR,
    ORIGIN,
    PLACE,
    AdminKey,
    Document,
    Duration,
    MasterKeyText,
    Networks,
    RecordAge,
    Retention,
    Timeout,
    VendorName,
    VendorTable,
    name_built_in,
    parse_folder,
    parse_params,
    split,
)


def _check_declared(vendor: str, info: ValidationInfo) -> str:
    if isinstance(info.context, _Context) and vendor not in info.context.vendors:
        hint = nearest(vendor, info.context.vendors)
        raise reject(f"there is no vendor `{vendor}`", f"{hint} Every vendor has its own [vendors.NAME] table.")
    return vendor


DeclaredVendor = Annotated[str, AfterValidator(_check_declared)]

# -- the settings


class Server(Table):
    """`[server]`."""

    host: str = Field(default="127.0.0.1", min_length=1, description="the address to listen on")
    port: int = Field(default=8787, ge=0, le=65535, description="the port to listen on; 0 takes any free one")
    public_url: str | None = Field(
        default=None, pattern=ORIGIN, description="the origin in links, such as https://penstock.example.com"
    )
    max_body_mb: int = Field(default=32, ge=1, le=1024, description="the largest request body, in MiB")
    drain_seconds: Duration = Field(default=20.0, description="how long a stopping server lets open requests finish")
    admin_key: AdminKey | None = Field(default=None, description="the administrator's key, of at least 8 characters")
    max_streams: int = Field(default=1000, ge=1, description="how many event streams may be open at once")
    max_streams_per_account: int = Field(
        default=250,
        ge=1,
        description="how many of them one account may have; a tenth of all is kept for those with few",
    )
    max_bodies_mb: int = Field(
        default=256, ge=1, description="how much memory the bodies of requests under way may take, in MiB"
    )
    max_bodies_mb_per_account: int = Field(
        default=64, ge=1, description="how much of it one account may take; always enough for one body"
    )
    max_uploads: int = Field(default=32, ge=1, description="how many files one account may send to one server at once")
    metrics_key: SecretStr | None = Field(default=None, description="a key for `GET /metrics` from other machines")
    metrics_port: int | None = Field(
        default=None, ge=1, le=65535, description="a port of its own for /metrics and health, which needs no key"
    )
    max_connections: int = Field(default=20_000, ge=1, description="how many connections may be open at once")
    max_connections_per_address: int = Field(
        default=5_000,
        ge=1,
        description="how many of them one address, or one IPv6 network of 64 bits, may have",
    )
    proxies: Networks = Field(
        default=(ip_network("127.0.0.0/8"), ip_network("::1/128")),
        description="networks (CIDR) of your reverse proxies, whose connections are not counted by address",
    )
    write_timeout: Timeout = Field(
        default=60.0, description="how long a caller may take nothing of its response before it is cut off"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least level logged"
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto", description="auto: text on a terminal, else JSON"
    )


class Fetch(Table):
    """`[fetch]`: how callers' URLs are fetched."""

    allow_networks: Networks = Field(
        default=(), description="private networks (CIDR) that callers' and vendors' URLs may lead into"
    )
    seconds: Timeout = Field(default=20.0, description="how long fetching one file may take")


class RunTime(Table):
    """`[run_time]`: what operators may change while servers run."""

    vendor_addresses: Literal["private", "public"] = Field(
        default="private",
        description="private: vendors that are added at run time may also be on this machine and in private networks; "
        "public: only at public addresses and in `fetch.allow_networks`",
    )


class AssetDownloads(Table):
    """`[assets]`."""

    downloads: Literal["proxied", "presigned"] = Field(
        default="proxied",
        description="proxied: through this server; presigned: a redirect to a short-lived address of the S3 bucket",
    )
    quota_mb: int = Field(
        default=0, ge=0, description="how many MiB of files and assets an account may keep; 0: any number"
    )


class Jobs(Table):
    """`[jobs]`."""

    start_timeout: Timeout = Field(
        default=HOUR, description="how long a job may wait to start, if its caller says nothing"
    )
    run_timeout: Timeout = Field(
        default=HOUR, description="how long a started job may take, if its caller says nothing"
    )
    max_timeout: Timeout = Field(default=DAY, validate_default=True, description="the longest timeout a caller may set")
    retention: Retention = Field(
        default=7 * DAY, description='how long finished jobs and their assets are kept, or "forever"'
    )
    file_retention: Retention = Field(default=DAY, description='how long uploaded files are kept, or "forever"')
    link_seconds: Timeout = Field(default=HOUR, description="how long a signed link works")
    max_waiting: int = Field(
        default=10_000, ge=1, description="how many jobs one account may have open before new ones get `queue_full`"
    )
    max_waiting_total: int = Field(
        default=100_000, ge=1, description="how many jobs all accounts together may have open"
    )
    run: Literal["here", "workers"] = Field(
        default="here",
        description="here: this server runs jobs too; workers: only `penstock worker` does (on PostgreSQL)",
    )
    max_held: int = Field(default=5_000, ge=1, description="how many jobs one process runs at once")

    @field_validator("max_timeout")
    @classmethod
    def cover_defaults(cls, value: float, info: ValidationInfo) -> float:
        """Require default timeouts within `max_timeout`."""
        if value < max(info.data.get("start_timeout", 0), info.data.get("run_timeout", 0)):
            raise reject("is less than start_timeout or run_timeout", "Raise max_timeout, or lower the other two.")
        return value


class Chat(Table):
    """`[chat]`."""

    heartbeat_seconds: Timeout = Field(
        default=15.0, description="how often a stream whose vendor is silent gets a comment, so that it is not cut"
    )
    cache_mb: int = Field(
        default=0, ge=0, le=65536, description="how much of the response cache may be kept, in MiB; 0: there is none"
    )
    cache_seconds: Timeout = Field(default=600.0, description="how long an answer in the response cache is good for")
    outage_seconds: Annotated[Duration, Field(ge=0, le=HOUR)] = Field(
        default=60.0,
        description="how long chat is served without the store, from its last answer, at most 1h; 0: never",
    )
    response_retention: Duration = Field(
        default=0.0, description="how long responses are kept, so that later requests can continue them; 0: not at all"
    )
    response_quota_mb: int = Field(
        default=64, ge=1, le=65536, description="how many MiB of them an account keeps; the oldest make room for new"
    )


class Records(Table):
    """`[records]`: how long records are kept."""

    requests: RecordAge = Field(
        default=None,
        description='how long usage records and ledger entries are kept one by one, at least 1d, or "forever"',
    )
    events: RecordAge = Field(
        default=None, description='how long events of jobs and budgets are kept, at least 1d, or "forever"'
    )
    audit: RecordAge = Field(
        default=None, description='how long entries of the audit log are kept, at least 1d, or "forever"'
    )


class Provenance(Table):
    """`[provenance]`: signatures of results."""

    results: Literal["signed", "unsigned"] = Field(
        default="signed", description="signed: every picture, film and 3D model says by whom and how it was made"
    )
    certificate: str | None = Field(
        default=None, description="the PEM file of the certificate, and of those above it; default: one of its own"
    )
    private_key: SecretStr | None = Field(
        default=None, validate_default=True, description="the PEM file of its private key, without a passphrase"
    )
    trust: str | None = Field(
        default=None, description="a PEM file of the roots whose signatures `verify` calls trusted, beside its own"
    )

    @field_validator("certificate", "private_key", "trust")
    @classmethod
    def check_pem(cls, value: Any, info: ValidationInfo) -> Any:
        """Require certificates that C2PA allows, and the key of the first one."""
        has_certificate = info.data.get("certificate") is not None
        if info.field_name == "private_key" and (value is None) is has_certificate and "certificate" in info.data:
            raise reject("goes together with `certificate`", "Give both, or neither for a certificate of its own.")
        if value is None:
            return value
        from penstock.provenance import credential  # noqa: PLC0415 - slow to load, and few set it

        try:
            if info.field_name == "trust":
                return credential.read_anchors(value.encode())
            if info.field_name == "certificate":
                credential.check_certificate(value.encode(), time.time())
            elif has_certificate:
                secret = value.get_secret_value().encode()
                credential.read_credential(info.data["certificate"].encode(), secret, time.time())
        except credential.CredentialProblem as problem:
            raise reject(problem.problem, problem.advice) from None
        return value


class Facades(Table):
    """`[facades]`: the protocols of other services that lead to our jobs."""

    off: Annotated[tuple[Literal["images", "videos", "replicate", "fal", "mcp"], ...], BeforeValidator(split)] = Field(
        default=(), description="those not served: images, videos, replicate, fal, mcp"
    )


class Sealing(Table):
    """`[sealing]`: the key that seals the secrets in the store."""

    master_key: MasterKeyText | None = Field(
        default=None,
        description="32 random bytes in hexadecimal or base64, one key for all processes of a store; "
        "default: the file `master-key` in `data`, on SQLite only",
    )
    previous_key: MasterKeyText | None = Field(
        default=None, description="the key before, until `penstock secrets rotate` has run"
    )


class RouteTable(Table):
    """One route of a model."""

    vendor: DeclaredVendor = Field(description="the name of a [vendors.NAME] table, or a built-in one")
    model: str = Field(default="", description="the vendor's own name of the model; default: the id")
    weight: int = Field(default=1, ge=1, description="the share of jobs among the routes of one order")
    order: int = Field(default=1, ge=1, description="routes of a lower order are used first")


class ModelEntry(Table):
    """One entry of `[[models]]`. Both forms end up in `routes`."""

    id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$", description="the name by which callers ask for the model"
    )
    kind: Literal["chat", "embedding", "speech", "transcription", "3d", "video", "image", "audio"] | None = Field(
        default=None, description="what it makes"
    )
    vendor: DeclaredVendor | None = Field(default=None, description="the one vendor that runs it")
    model: str = Field(default="", description="the vendor's own name of the model; default: the id")
    price: AnyPrice | None = Field(
        default=None, description="what a job or a million tokens cost; default: what the vendor's file says"
    )
    title: str = Field(default="", description="what it is, for people")
    params: Annotated[Mapping[str, Any] | Literal["vendor"] | None, PlainValidator(parse_params)] = Field(
        default=None,
        description='of a declared model: the JSON Schema of its params, "file:PATH" of one, or "vendor"; default: any',
    )
    file: str | None = Field(default=None, description="of a declared model: the param that takes the caller's `file`")
    output: str | None = Field(
        default=None,
        description="of a declared model: where in the vendor's result the asset is; default: found",
    )
    preview: str | None = Field(default=None, description="of a declared model: where a picture of it is")
    workflow: Document | None = Field(default=None, description='of ComfyUI: the graph, or "file:PATH" of it')
    bind: Mapping[str, str] | None = Field(
        default=None, description='of ComfyUI: which node input each param sets, such as {prompt = "6.text"}'
    )
    routes: tuple[RouteTable, ...] = Field(default=(), validate_default=True, description="several ways to run it")

    @field_validator("id")
    @classmethod
    def refuse_duplicate(cls, value: str, info: ValidationInfo) -> str:
        """Reject a second entry with an id; entries are read in order, so the later one is reported."""
        if isinstance(info.context, _Context):
            if value in info.context.ids:
                raise reject(
                    f"the id `{value}` was given before", "Give each model one entry; use `routes` for several vendors."
                )
            info.context.ids.add(value)
        return value

    @field_validator("routes")
    @classmethod
    def settle(cls, routes: tuple[RouteTable, ...], info: ValidationInfo) -> tuple[RouteTable, ...]:
        """Convert `vendor` and `model` to a route."""
        if not {"id", "vendor", "model"} <= info.data.keys():
            return routes  # one of them is wrong, and already reported
        vendor, model = info.data["vendor"], info.data["model"]
        if bool(routes) == bool(vendor) or (routes and model):
            raise reject("needs either `vendor` (and `model`) or `routes`", "Keep exactly one of the two forms.")
        written = routes or (RouteTable(vendor=vendor, model=model),)
        return tuple(route.model_copy(update={"model": route.model or info.data["id"]}) for route in written)


OWN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("data", "weights"), True),
    "server": {"host": True, "port": True},
    "jobs": {"run": True},
}
"""Settings that may differ between processes that serve together."""


class Settings(Table):
    """Everything the operator can set."""

    data: Annotated[Path, BeforeValidator(parse_folder)] = Field(
        default_factory=lambda: Path(user_data_dir("penstock")), description="the folder of everything that is kept"
    )
    database_url: str = Field(
        pattern=r"^(sqlite:///[^:]|postgres(ql)?://)",
        default_factory=lambda earlier: f"sqlite:///{earlier['data'] / 'penstock.db'}",
        description="the store: sqlite:/// and the path of a file, or postgresql://name:password@host/database",
    )
    assets_url: str = Field(
        pattern=PLACE,
        default_factory=lambda earlier: (earlier["data"] / "assets").as_uri(),
        description="where files are kept: file:// and the whole path of a folder, or s3://bucket/prefix",
    )
    weights: Annotated[Path, BeforeValidator(parse_folder)] = Field(
        default_factory=lambda: Path(user_data_dir("penstock")) / "weights",
        description="the folder of the built-in models' weights, which several servers may share",
    )
    temporal: str | None = Field(
        default=None,
        pattern=ADDRESS,
        description="host:port of a Temporal server that chooses which worker runs a job (on PostgreSQL)",
    )
    temporal_namespace: str = Field(default="default", min_length=1, description="the namespace to use there")
    temporal_queue: str = Field(
        default="penstock", min_length=1, description="the task queue; one for each store in a namespace"
    )
    server: Server = Server()
    fetch: Fetch = Fetch()
    run_time: RunTime = RunTime()
    assets: AssetDownloads = AssetDownloads()
    jobs: Jobs = Jobs()
    chat: Chat = Chat()
    records: Records = Records()
    content_log: ContentLogTable = ContentLogTable()
    provenance: Provenance = Provenance()
    facades: Facades = Facades()
    sealing: Sealing = Sealing()
    sessions: Sessions = Sessions()
    sign_in: Providers = Field(default={}, repr=False)
    vendors: Annotated[Mapping[VendorName, VendorTable], BeforeValidator(name_built_in)] = Field(default={}, repr=False)
    models: tuple[ModelEntry, ...] = ()
    prices: tuple[PriceEntry, ...] = ()
    guardrails: tuple[GuardrailTable, ...] = ()
    _source: Source = Source()
    _written: Mapping[str, Any] | None = None
    _addition: "Addition | None" = None

    @field_validator("temporal")
    @classmethod
    def need_postgres(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Require PostgreSQL and the extra `temporal` for Temporal."""
        if value is not None and info.data.get("database_url", "").startswith("sqlite:"):
            raise reject("needs a store on PostgreSQL", "Set `database_url` to postgresql://…, or leave it out.")
        if value is not None and find_spec("temporalio") is None:
            raise reject("needs an extra that is not installed", "Run `pip install 'penstock[temporal]'`.")
        return value

    @field_validator("guardrails")
    @classmethod
    def refuse_equal_names(cls, tables: tuple[GuardrailTable, ...]) -> tuple[GuardrailTable, ...]:
        """Reject two guardrails of one name: records and metrics could not tell them apart."""
        names = [table.name for table in tables]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise reject(f"two have the name `{twice}`", "Give each guardrail a name of its own.")
        return tables

    @field_validator("assets")
    @classmethod
    def need_bucket(cls, value: AssetDownloads, info: ValidationInfo) -> AssetDownloads:
        """Reject presigned downloads from a folder, which has no URLs."""
        if value.downloads == "presigned" and info.data.get("assets_url", "s3:").startswith("file:"):
            raise reject("`presigned` needs a bucket", "Set `assets_url` to s3://…, or leave downloads proxied.")
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Keep the sources of the values."""
        if isinstance(context, _Context):
            self._source, self._written, self._addition = context.source, context.written, context.addition

    @property
    def lists_models(self) -> bool:
        """Return whether the file lists the models. Otherwise every vendor offers all of its own."""
        return len(self.models) > (len(self._addition.models) if self._addition else 0)

    def is_from_file(self, part: str, name: str) -> bool:
        """Return whether the file has a vendor, model or limit of this name. `part` is the plural of these."""
        return name in self._names_in_file(part)

    def _names_in_file(self, part: str) -> set[str]:
        added = self._addition or Addition()
        if part == "vendors":
            return set(self.vendors) - set(added.vendors)
        if part == "limits":
            return {name for name in LIVE_LIMITS if find_written(self._values_written(), name) is not None}
        return {entry.id for entry in self.models[: len(self.models) - len(added.models)]}

    def _values_written(self) -> Mapping[str, Any]:
        """Return the values as the file, the environment and the command line have them."""
        return self.model_dump(exclude_unset=True) if self._written is None else self._written

    def is_added(self, vendor: str) -> bool:
        """Return whether a vendor was added at run time."""
        return self._addition is not None and vendor in self._addition.vendors

    @property
    def hidden_models(self) -> frozenset[str]:
        """Return the ids of models that are not offered, though a vendor has them."""
        return self._addition.hidden if self._addition else frozenset()

    def extend(self, addition: "Addition") -> "Settings":
        """Return these settings with vendors and models added. Raise SettingsError as for a file."""
        written = self._values_written()
        models = list(written.get("models", ()))
        names = {("vendors", name): f"vendors.{name}" for name in addition.vendors}
        names |= {("models", len(models) + at): f"models.{each['id']}" for at, each in enumerate(addition.models)}
        names |= {split_limit(name): f"limits.{name}" for name in LIVE_LIMITS if find_written(written, name) is None}
        source = replace(self._source, added=names, secrets=self._source.secrets | addition.secrets)
        vendors = {**written.get("vendors", {}), **addition.vendors}
        values = with_limits(written, addition.limits)
        values |= {"vendors": vendors, "models": [*models, *addition.models]}
        context = _Context(source, frozenset(vendors) | set(BUILT_IN), written=written, addition=addition)
        try:
            return Settings.model_validate(values, context=context)
        except ValidationError as error:
            problems = explain(error, "", source, Settings).problems
        raise SettingsError(problems)  # outside `except`: Pydantic's error holds the values

    @property
    def session_policy(self) -> SessionPolicy:
        """Return the limits of people's sessions."""
        return self.sessions.policy(frozenset(self.sign_in))

    @property
    def storage_quota(self) -> int | None:
        """Return the default storage quota in bytes; None if it is unlimited."""
        return self.assets.quota_mb << 20 or None

    @property
    def source(self) -> Source:
        """Return the sources of the values, to `explain` the problems of a vendor's table."""
        return self._source

    @property
    def secrets(self) -> frozenset[str]:
        """Return every secret among the values, so that logs can mask them."""
        return self._source.secrets

    @cached_property
    def fingerprint(self) -> str:
        """Return a fingerprint of the settings, without secrets and settings that may differ between processes."""
        shared = self.model_dump(mode="json", exclude=OWN)
        values = map_texts(shared, lambda text, _: "***" if text in self.secrets else text)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Addition:
    """Vendors, models and limits that are not in the file, as its tables would have them."""

    vendors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    models: Sequence[Mapping[str, Any]] = ()
    hidden: frozenset[str] = frozenset()
    """Models of vendors that are not offered."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values by dotted name, such as `jobs.max_waiting`."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The facts about other entries that validating one needs."""

    source: Source
    vendors: frozenset[str]
    ids: set[str] = field(default_factory=set[str])
    written: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    addition: Addition | None = None


# -- reading

SHORT: Mapping[str, tuple[str, ...]] = {"PENSTOCK_ADMIN_KEY": ("server", "admin_key")}
VARIABLES: Mapping[str, tuple[str, ...]] = SHORT | {
    f"PENSTOCK_{'_'.join(path).upper()}": path
    for path in (
        *(("data",), ("database_url",), ("assets_url",), ("weights",)),
        *(("temporal",), ("temporal_namespace",), ("temporal_queue",)),
        *(("server", name) for name in Server.model_fields),
        *(("fetch", name) for name in Fetch.model_fields),
        *(("run_time", name) for name in RunTime.model_fields),
        *(("assets", name) for name in AssetDownloads.model_fields),
        *(("jobs", name) for name in Jobs.model_fields),
        *(("chat", name) for name in Chat.model_fields),
        *(("records", name) for name in Records.model_fields),
        *(("content_log", name) for name in ContentLogTable.model_fields),
        *(("provenance", name) for name in Provenance.model_fields),
        *(("facades", name) for name in Facades.model_fields),
        *(("sealing", name) for name in Sealing.model_fields),
        *(("sessions", name) for name in Sessions.model_fields),
    )
}
"""Environment variables by setting; of two for one setting, the later applies."""


def load(config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Settings:
    """Read every setting; `overrides` come from the command line, such as {"server.port": 80}, or None."""
    found = gather(config, environ, overrides, VARIABLES)
    problems = found.problems
    vendors = found.values.get("vendors")
    names = frozenset(cast("dict[str, Any]", vendors)) if isinstance(vendors, dict) else frozenset[str]()
    try:
        settings = Settings.model_validate(
            found.values, context=_Context(found.source, names | set(BUILT_IN), written=found.values)
        )
    except ValidationError as error:
        problems += explain(error, "", found.source, Settings).problems
    else:
        if not problems:
            return settings
    raise SettingsError(problems)  # outside `except`: Pydantic's error holds the values
