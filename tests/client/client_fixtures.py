"""One server for each module of tests, a front that fails on demand, and clients of both kinds."""

import io
import shutil
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from flaky_front import Front, fronting
from PIL import Image
from stage import Stage, staged

from penstock.client import AsyncClient, Client


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> Generator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    shutil.copy(empty_store, folder)
    with staged(folder, weights) as stage:
        yield stage


@pytest.fixture(scope="module")
def key(stage: Stage) -> str:
    return stage.key()


@pytest.fixture(scope="module")
def client(stage: Stage, key: str) -> Generator[Client]:
    with Client(stage.url, key) as client:
        yield client


@pytest.fixture
async def async_client(stage: Stage, key: str) -> AsyncGenerator[AsyncClient]:
    async with AsyncClient(stage.url, key) as client:
        yield client


@pytest.fixture
def front(stage: Stage) -> Generator[Front]:
    with fronting(stage.url) as front:
        yield front


@pytest.fixture
def fronted(front: Front, key: str) -> Generator[Client]:
    """A client that goes through the front."""
    with Client(front.url, key) as client:
        yield client


@pytest.fixture
def picture() -> Image.Image:
    return Image.radial_gradient("L").convert("RGB")


@pytest.fixture
def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
