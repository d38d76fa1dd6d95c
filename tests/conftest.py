"""A whole gateway on a real socket for every test that asks for one, spoken to by real clients."""

import asyncio
import logging
import os
import shutil
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import kept_statements
import pytest
from calm_loop import CalmLoop
from kept_pool import KeptPool
from plain import NO_TLS
from postgres import PostgresServer
from sqlalchemy import Connection
from store.trials import connected, undone
from temporal_server import TemporalServer

import penstock.web.routes  # noqa: F401  loaded here, as no test waits for a thread to load it
from penstock.clocks import CLOCKS, Clocks
from penstock.domain import api_keys
from penstock.domain.budgets import Budget, Period
from penstock.domain.money import parse_usd
from penstock.gateway import Gateway
from penstock.observability import logs
from penstock.ports import Ports
from penstock.settings.tables import Provenance, Settings, load
from penstock.store import schema
from penstock.store.connect import make_engine, open_database
from penstock.store.database import Database
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import budget_rows
from penstock.web.app import create_app
from penstock.web.server.serving import serve

hypothesis.settings.register_profile("calm", deadline=None, max_examples=40)  # a busy machine is no fault of the code
hypothesis.settings.load_profile("calm")

pytest_plugins = ["client_fixtures", "pace"]
SIMULATOR = '[vendors.sim]\ntype = "sim"\n'
"""Settings by which the simulator serves everything, the built-in engines' models too."""
VIDEO = "sim_text_to_video"
MODEL = "sim_image_to_model"
PORTS = Ports(open_pool=KeptPool, open_database=kept_statements.open_database)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run every asynchronous test on a loop that is not hurried by a busy machine."""
    return {"calm": CalmLoop}


@dataclass
class Server:
    """A running gateway and a client that holds a key of the account `default`."""

    gateway: Gateway
    url: str
    client: httpx.AsyncClient
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def new_key(self, account: str = "default", **options: Any) -> str:
        """A new API key; `models`, `scopes`, `expires_at` as in ApiKey, `requests_per_minute` and such as in Limits.

        `budgets` are amounts by period: `{"total": "0.50"}`.
        """
        return await create_key(self.gateway, account, **options)

    async def sign_in(self, account: str = "default", **options: Any) -> httpx.AsyncClient:
        """A client with a new key."""
        key = await self.new_key(account, **options)
        return await self.clients.enter_async_context(client_of(self.url, key))

    async def submit(
        self, model: str = VIDEO, *, script: dict[str, Any] | None = None, **params: Any
    ) -> dict[str, Any]:
        """Submit one job and return its record; `script` is for `sim_*` models."""
        if script is not None:
            params["script"] = {"latency": 0.05, **script}
        body = {"model": model, "input": [{"params": params}]}
        response = await self.client.post("/model/v1/generation", json=body)
        assert response.status_code == 202, response.text
        return response.json()

    async def finish(self, job_id: str, seconds: int | None = None) -> dict[str, Any]:
        """The record of a job once it is done: after so many seconds at most, or whenever that is."""
        while True:
            response = await self.client.get(f"/api/v1/jobs/{job_id}", params={"wait": seconds or 60})
            assert response.status_code == 200, response.text
            if response.json()["done"]:
                return response.json()
            assert seconds is None, response.json()

    def age_orders(self, seconds: float = 3600) -> None:
        """Let the simulator have accepted its orders so much earlier: what should take long is then over."""
        upstream = self.gateway.offers.vendors["sim"].upstream
        with upstream._lock:
            upstream._database.execute("UPDATE orders SET accepted_at = accepted_at - ?", (seconds,))

    async def generate(self, model: str = VIDEO, **params: Any) -> dict[str, Any]:
        """Submit one job and wait for its end."""
        return await self.finish((await self.submit(model, **params))["id"])


@pytest.fixture(autouse=True)
def logging_is_put_back() -> Generator[None]:
    """A command that serves in this process logs to a stream that ends with it, and would fail later tests."""
    root = logging.getLogger()
    level = root.level
    yield
    ours = [handler for handler in root.handlers if type(handler).__module__ == logs.__name__]
    if ours:
        for handler in ours:
            root.removeHandler(handler)
        root.setLevel(level)
        logging.captureWarnings(capture=False)
        logging.raiseExceptions = True


@pytest.fixture(autouse=True)
def no_order_is_left() -> Generator[None]:
    """An engine that goes on after its test would fail the next one, whose folder it finds gone."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("order "):
            thread.join(200)
            assert not thread.is_alive(), f"{thread.name} goes on"


def client_of(url: str, key: str | None) -> httpx.AsyncClient:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS)


async def create_key(gateway: Gateway, account: str = "default", **options: Any) -> str:
    database, now = gateway.database, time.time()
    public_id, secret = api_keys.make(await database.write(key_rows.signing_secret))
    account_id = await database.write(key_rows.account_id, account, now)
    caps = options.pop("budgets", {})
    limits = api_keys.Limits(**{name: options.pop(name) for name in key_rows.LIMITS if name in options})
    key = api_keys.ApiKey(
        public_id=public_id,
        account_id=account_id,
        account=account,
        name="test",
        secret_hash=api_keys.hash_secret(secret),
        created_at=now,
        lineage=public_id,
        limits=limits,
        **options,
    )
    await database.write(key_rows.add, key)
    for period, amount in caps.items():
        budget = Budget(owner=public_id, period=Period(period), cap=parse_usd(amount))
        await database.write(budget_rows.put, budget, account_id, now)
    return f"{api_keys.PREFIX}{public_id}_{secret}"


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder of the built-in models' weights: of PENSTOCK_WEIGHTS, else where `penstock models pull` puts them."""
    environ = {"PENSTOCK_WEIGHTS": os.environ.get("PENSTOCK_WEIGHTS", "")}
    folder = load(None, environ, {}).weights
    if not (folder / "minilm.onnx").is_file():
        pytest.fail(f"No weights in {folder}: run `penstock models pull`, or set PENSTOCK_WEIGHTS to their folder.")
    return folder


@pytest.fixture(scope="session")
def cast_weights(weights: Path) -> Path:
    """The folder of weights, with the cast of films in it."""
    if not all((weights / name).is_file() for name in ("cast-pictures.zip", "cast-words.zip", "cast-groups.json")):
        pytest.fail(f"No cast of films in {weights}: run `penstock models pull video`.")
    return weights


def migrate(url: str) -> None:
    """Give a store the newest schema."""
    engine = make_engine(url)
    schema.upgrade(engine)
    engine.dispose()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated store, made once: migrating for every test would cost more than most tests."""
    path = tmp_path_factory.mktemp("store") / "penstock.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Generator[PostgresServer]:
    """A PostgreSQL server that is this test process's alone: tests may stop, kill or freeze it, and start it again."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Generator[str]:
    """A fresh empty database on a real PostgreSQL, as `PENSTOCK_DATABASE_URL` names it; gone after the test."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def temporal_server() -> Generator[TemporalServer]:
    """A Temporal server that is this test process's alone."""
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> str:
    """The name of a database with the newest schema, from which others are copied: 25 ms instead of 250."""
    name = postgres_server.create()
    migrate(postgres_server.url(name))
    return name


@pytest.fixture
def postgres_store_url(postgres_server: PostgresServer, migrated_template: str) -> Generator[str]:
    """The same as `postgres_url`, with the newest schema in it."""
    with postgres_server.database(migrated_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with nothing in it, once a file and once on PostgreSQL."""
    is_postgres = request.param == "postgresql"
    return request.getfixturevalue("postgres_url") if is_postgres else f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, empty_store: Path) -> str:
    """An empty store with the newest schema, once a file and once on PostgreSQL: open it with `open_database`."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_store_url")
    shutil.copy(empty_store, tmp_path / "store.db")
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(scope="module")
def postgres_trial(postgres_server: PostgresServer, migrated_template: str) -> Generator[Connection]:
    """A connection to an empty store on PostgreSQL, for a whole module: what a test writes, it undoes."""
    with postgres_server.database(migrated_template) as url, connected(url) as connection:
        yield connection


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def trial(request: pytest.FixtureRequest) -> Generator[Connection]:
    """The same, once to SQLite in memory and once to PostgreSQL."""
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres_trial")
        return
    with connected() as connection:
        yield connection


@pytest.fixture
def connection(trial: Connection) -> Generator[Connection]:
    """A transaction on an empty store of either kind, which is undone."""
    with undone(trial) as connection:
        yield connection


@pytest.fixture
async def database(store_url: str) -> AsyncGenerator[Database]:
    """An empty store of either kind, as a process opens it."""
    database = open_database(store_url)
    database.patience = 60  # a busy machine is no outage
    yield database
    await database.close()


@asynccontextmanager
async def running(settings: Settings, port: int = 0, clocks: Clocks = CLOCKS) -> AsyncGenerator[Server]:
    """A gateway that serves until the block ends. It signs results, at 15 ms each, only if its settings say so."""
    if "provenance" not in settings.model_fields_set:
        settings = settings.model_copy(update={"provenance": Provenance(results="unsigned")})
    gateway = await Gateway.open(settings, ports=PORTS, clocks=clocks)
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    serving = asyncio.create_task(
        serve(
            create_app(gateway),
            host="127.0.0.1",
            port=port,
            drain_seconds=2,
            on_ready=ready.set_result,
            on_drain=gateway.drain,
            stop=stop,
        )
    )
    await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
    url = f"http://127.0.0.1:{ready.result()}"
    async with AsyncExitStack() as clients:
        client = await clients.enter_async_context(client_of(url, await create_key(gateway)))
        try:
            yield Server(gateway, url, client, clients)
        finally:
            stop.set()
            await serving
            await gateway.close()


Start = Callable[..., Awaitable[Server]]


@pytest.fixture
def stores(request: pytest.FixtureRequest) -> Callable[[Path], dict[str, Any]]:
    """The store of a data folder as an override: none is the folder's own file.

    With PENSTOCK_TEST_STORE=postgresql in the environment it is a database on PostgreSQL, the same for the same folder.
    """
    if os.environ.get("PENSTOCK_TEST_STORE") != "postgresql":
        return lambda _folder: {}
    server: PostgresServer = request.getfixturevalue("postgres_server")
    template: str = request.getfixturevalue("migrated_template")
    known: dict[Path, str] = {}

    def find(folder: Path) -> dict[str, Any]:
        if folder not in known:
            known[folder] = server.url(server.create(template))
        return {"database_url": known[folder]}

    return find


@pytest.fixture
async def start(
    tmp_path: Path, empty_store: Path, weights: Path, stores: Callable[[Path], dict[str, Any]]
) -> AsyncGenerator[Start]:
    """Start gateways with the given settings: TOML text, and overrides such as `{"jobs.max_waiting": 3}`."""
    async with AsyncExitStack() as stack:

        async def begin(
            toml: str = SIMULATOR,
            overrides: dict[str, Any] | None = None,
            data: Path | None = None,
            clocks: Clocks = CLOCKS,
        ) -> Server:
            folder = data or tmp_path / "data"
            if not (folder / "penstock.db").exists():
                folder.mkdir(exist_ok=True)
                shutil.copy(empty_store, folder)
            config = None
            if toml:
                config = tmp_path / "penstock.toml"
                config.write_text(toml)
            wanted = {"data": folder, "weights": weights, **stores(folder), **(overrides or {})}
            settings = load(config, {}, wanted)
            return await stack.enter_async_context(running(settings, clocks=clocks))

        yield begin


@pytest.fixture
async def server(start: Start) -> Server:
    """A gateway whose simulator serves everything."""
    return await start()
