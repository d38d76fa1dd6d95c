"""A file behind https arrives only from the host that was named, and never over plain http after all."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme
from loopback import LOOPBACK, MEGABYTE, PNG, Names, Server, gather, redirect_to, serve

from penstock.domain.job_errors import FileFetchFailed, UrlNotAllowed
from penstock.safe_fetch.fetcher import SafeFetcher


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(Server()) as running:
        yield running


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def tls_server(authority: trustme.CA) -> AsyncIterator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("files.example").configure_cert(context)
    async with serve(Server(), context) as running:
        yield running


@asynccontextmanager
async def trusting(authority: trustme.CA) -> AsyncIterator[SafeFetcher]:
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"]), tls=tls) as fetcher:
        yield fetcher


async def test_a_server_without_tls_fails(server: Server):
    async with SafeFetcher(LOOPBACK) as fetcher:
        with pytest.raises(FileFetchFailed, match="TLS") as failure:
            await gather(fetcher.fetch(server.url().replace("http:", "https:"), max_bytes=MEGABYTE))
    assert failure.value.retryable is False
    assert "127.0.0.1" not in failure.value.message


async def test_tls_is_verified_by_name_and_authority(tls_server: Server, authority: trustme.CA):
    async with trusting(authority) as fetcher:
        url = f"https://files.example:{tls_server.port}/"
        assert await gather(fetcher.fetch(url, max_bytes=MEGABYTE)) == PNG
        with pytest.raises(FileFetchFailed, match="TLS"):
            await gather(fetcher.fetch(url.replace("files.", "other."), max_bytes=MEGABYTE))
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        with pytest.raises(FileFetchFailed, match="TLS"):
            await gather(fetcher.fetch(url, max_bytes=MEGABYTE))
    assert len(tls_server.requests) == 1


async def test_a_redirect_from_https_to_http_is_refused(server: Server, tls_server: Server, authority: trustme.CA):
    tls_server.reply = redirect_to(server.url())
    async with trusting(authority) as fetcher:
        with pytest.raises(UrlNotAllowed, match="from https to http"):
            await gather(fetcher.fetch(f"https://files.example:{tls_server.port}/", max_bytes=MEGABYTE))
    assert server.requests == []
