"""Share links by the Python client and on the command line."""

import httpx
import pytest
from remote_shell import VIDEO, Shell

from penstock.client import ConflictError, InvalidRequestError, NotFoundError

DAY = 86_400


@pytest.fixture
def shell(stage, key) -> Shell:
    return Shell(stage.url, key)


@pytest.fixture
def film(client):
    return client.generate(VIDEO, script={"latency": 0.05}).wait()


def status_of(url: str) -> int:
    return httpx.get(url, trust_env=False).status_code


def test_a_job_is_shared_listed_and_revoked(client, film):
    link = film.share(expires_in=3600)
    assert (link.job_id, link.include_input) == (film.id, False)
    assert link.url is not None
    assert link.url not in repr(link)
    assert (link.expires_at - link.created_at).total_seconds() == 3600
    assert status_of(link.url) == 200
    (listed,) = client.shares(film.id)
    assert (listed.id, listed.url) == (link.id, None)
    client.revoke_share(link.id)
    client.revoke_share(link.id)
    assert list(client.shares(film.id)) == []
    assert status_of(link.url) == 404


def test_what_cannot_be_shared_raises(client, film):
    with pytest.raises(InvalidRequestError, match="expires_in"):
        film.share(expires_in=1)
    with pytest.raises(NotFoundError):
        client.share("job_unknown")
    with pytest.raises(NotFoundError):
        client.revoke_share("share_unknown")
    failed = client.generate(VIDEO, script={"latency": 0.05, "ending": "failed"}).wait(check=False)
    with pytest.raises(ConflictError):
        failed.share()


async def test_the_other_client_shares_too(async_client):
    job = await (await async_client.generate(VIDEO, script={"latency": 0.05})).wait()
    link = await job.share(include_input=True)
    assert [each.include_input async for each in async_client.shares(job.id)] == [True]
    await async_client.revoke_share(link.id)
    assert [each async for each in async_client.shares(job.id)] == []


def test_the_commands_share_list_and_revoke(shell, film):
    made = shell(f"jobs share {film.id} --for 1h")
    assert "penstock shares revoke share_" in made.stderr
    url = made.stdout.strip()
    assert status_of(url) == 200
    listed = shell(f"shares list --job {film.id}").stdout
    (line,) = [line for line in listed.splitlines() if film.id in line]
    assert len(line) <= 100
    share_id = line.split()[0]
    assert shell(f"shares revoke {share_id}").stderr == f"{share_id} revoked\n"
    assert status_of(url) == 404
    record = shell.json(f"jobs share {film.id} --for 2d --include-input")
    assert (record["include_input"], record["url"].startswith("http")) == (True, True)
    assert [each["id"] for each in shell.json(f"shares list --job {film.id}")] == [record["id"]]
    assert shell.json(f"shares revoke {record['id']}") == {"id": record["id"], "revoked": True}


def test_the_commands_explain_what_is_wrong(shell, film):
    assert "--for: write a time such as 90m, 12h or 7d" in shell(f"jobs share {film.id} --for soon", 2).stderr
    assert "at most 90d" in shell(f"jobs share {film.id} --for 100d", 2).stderr
    assert "no such share link" in shell("shares revoke share_unknown", 3).stderr
