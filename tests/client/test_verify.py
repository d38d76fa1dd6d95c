"""Verification by the Python client and on the command line, with a server and without one."""

import httpx
import pytest
from remote_shell import VIDEO, Shell
from signers import make_signer
from small_media import picture
from stage import SETTINGS, staged

from penstock.client import BadInput, Client, InvalidRequestError

SIGNED = SETTINGS + '[provenance]\nresults = "signed"\n'
QUICK = {"script": {"latency": 0.05}}


@pytest.fixture(scope="module")
def stage(tmp_path_factory, weights):
    with staged(tmp_path_factory.mktemp("signing"), weights, SIGNED) as stage:
        yield stage


@pytest.fixture
def shell(stage, key) -> Shell:
    return Shell(stage.url, key)


@pytest.fixture
def model(client, tmp_path):
    """A model on the disk, and its sidecar beside it."""
    output = client.generate("sim_image_to_model", **QUICK).wait().outputs[0]
    path = tmp_path / "model.glb"
    path.write_bytes(output.bytes())
    (tmp_path / "model.glb.jws").write_bytes(httpx.get(output.sidecar_url, trust_env=False).content)
    return path


@pytest.fixture
def root(stage, tmp_path):
    path = tmp_path / "root.pem"
    path.write_text(stage.server.gateway.credential.anchors)
    return path


def test_a_client_verifies_files_and_outputs(client, tmp_path, model):
    job = client.generate(VIDEO, **QUICK).wait()
    (tmp_path / "film.mp4").write_bytes(job.outputs[0].bytes())
    for given in (tmp_path / "film.mp4", job.outputs[0].bytes(), job.outputs[0]):
        found = client.verify(given)
        assert (found.verdict, found.is_trusted, found.generation["job_id"]) == ("signed_here", True, job.id)
    assert client.verify(model).verdict == "unsigned"
    assert client.verify(model, (tmp_path / "model.glb.jws").read_text()).verdict == "signed_here"
    assert client.verify(picture()).signer is None
    with pytest.raises(BadInput):
        client.verify(tmp_path / "nothing.png")
    with pytest.raises(InvalidRequestError):
        client.verify(b"")


async def test_an_asynchronous_client_does_too(async_client, png):
    assert (await async_client.verify(png)).verdict == "unsigned"


def test_the_command_names_the_job(shell, client, tmp_path):
    job = client.generate(VIDEO, **QUICK).wait()
    (tmp_path / "film.mp4").write_bytes(job.outputs[0].bytes())
    said = shell(f"verify {tmp_path}/film.mp4").stdout
    assert said.startswith("signed by this server, and not changed since\n")
    assert f"job_id      {job.id}\n" in said
    assert "signer      Penstock, Penstock (trusted)\n" in said
    assert shell.json(f"verify {tmp_path}/film.mp4")["generation"]["job_id"] == job.id


def test_the_command_fails_for_a_changed_file(shell, client, tmp_path):
    data = bytearray(client.generate(VIDEO, **QUICK).wait().outputs[0].bytes())
    data[-40] ^= 1
    (tmp_path / "film.mp4").write_bytes(data)
    said = shell(f"verify {tmp_path}/film.mp4", code=1).stdout
    assert said.startswith("changed after it was signed\n")
    assert "problem     assertion.bmffHash.mismatch" in said
    (tmp_path / "plain.png").write_bytes(picture())
    assert shell.json(f"verify {tmp_path}/plain.png", code=1)["verdict"] == "unsigned"


def test_the_command_finds_a_sidecar_and_needs_no_server(model, root):
    shell = Shell("http://127.0.0.1:9", "none")
    assert shell(f"verify {model} --root {root}").stdout.startswith("signed by this server")
    model.with_name("model.glb.jws").write_text("a.b.c")
    assert "sidecar.invalid" in shell(f"verify {model} --root {root}", code=1).stdout
    assert "cannot be read" in shell(f"verify {model} --root {root} --sidecar {model}", code=2).output
    assert "no certificates" in shell(f"verify {model} --root {model}", code=2).output


def test_a_root_that_has_not_signed_it_does_not_trust_it(client: Client, tmp_path):
    (tmp_path / "film.mp4").write_bytes(client.generate(VIDEO, **QUICK).wait().outputs[0].bytes())
    (tmp_path / "root.pem").write_text(make_signer("Acme").root)
    shell = Shell("http://127.0.0.1:9", "none")
    report = shell.json(f"verify {tmp_path}/film.mp4 --root {tmp_path}/root.pem", code=1)
    assert (report["verdict"], report["is_trusted"]) == ("signed_elsewhere", False)
