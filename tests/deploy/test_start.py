"""What `penstock serve` loads before it listens: little, and nothing that most servers never need."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

MAX_MODULES: Final = 790
"""Modules of our own and of packages. Those of the standard library differ between its versions."""
NOT_YET: Final = frozenset(
    (
        *("fastapi", "aiohttp", "mcp", "httpx"),  # the first request that needs them loads them
        *("psycopg", "temporalio", "alembic"),  # SQLite, whose schema is current
        *("opentelemetry", "cryptography", "jwt", "genai_prices"),  # not set up
        *("PIL", "av", "numpy", "c2pa", "onnxruntime", "trimesh"),  # for child processes
    )
)
IMPORTED: Final = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)


def list_modules(data: Path, verb: str = "serve") -> set[str]:
    """Start a server, stop it as soon as it has said its address, and return the modules that it loaded."""
    command = [sys.executable, "-X", "importtime", "-m", "penstock", verb, "--port", "0", "--data", str(data)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    errors = data / "errors"
    with (
        errors.open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment) as server,  # noqa: S603  our own
    ):
        assert server.stdout is not None
        first = server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        server.stdout.read()
    said = errors.read_text()
    assert b"serves on" in first, said[-3000:]
    return set(IMPORTED.findall(said))


@pytest.fixture(scope="module")
def modules(tmp_path_factory) -> set[str]:
    """Return the modules of the second start, which finds a store with the current schema."""
    data = tmp_path_factory.mktemp("data")
    list_modules(data)
    return list_modules(data)


def test_nothing_is_loaded_before_it_is_needed(modules):
    loaded = {name.partition(".")[0] for name in modules}
    assert {"sqlalchemy", "pydantic", "uvicorn", "obstore"} <= loaded
    assert loaded & NOT_YET == set()


def test_the_pages_are_not_loaded_before_the_first_request(modules):
    assert "penstock.web.health" in modules
    assert not {name for name in modules if name.startswith(("penstock.web.routes", "penstock.web.facades"))}


def test_few_modules_are_loaded(modules):
    counted = Counter(name.partition(".")[0] for name in modules)
    counted = Counter({name: count for name, count in counted.items() if name not in sys.stdlib_module_names})
    assert counted.total() <= MAX_MODULES, counted.most_common(30)
