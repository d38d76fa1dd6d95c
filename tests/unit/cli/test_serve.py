"""`penstock serve`: a server in a process of its own, from its first words to its drain."""

import base64
import contextlib
import io
import json
import os
import pty
import re
import shlex
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx
import pytest
from PIL import Image
from plain import NO_TLS
from shell import Shell, forget_settings

from penstock.dispatch.leadership import Leadership
from penstock.store import schema
from penstock.store.sqlite.database import open_file


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    forget_settings(monkeypatch)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


class Serving:
    """A server in a process of its own, and what it said when it was ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.welcome = read_until(process.stdout, "/api/v1/jobs?limit=2")
        self.curls = [line for line in self.welcome.splitlines() if line.startswith("curl ")]
        self.address = self.welcome.split("serves on ")[1].split()[0]

    def get(self, path: str, key: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        return httpx.get(f"{self.address}{path}", headers=headers, verify=NO_TLS, timeout=300)

    def await_log(self, text: str) -> str:
        return read_until(self.process.stderr, text).splitlines()[-1]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        return self.process.returncode


def read_until(stream: IO[str] | None, text: str) -> str:
    """Everything up to the line with this text; a stream that ends before it fails the test."""
    assert stream is not None
    read = ""
    for line in stream:
        read += line
        if text in line:
            return read
    raise AssertionError(f"{text!r} never came, but:\n{read}")


@contextlib.contextmanager
def serving(shell: Shell, options: str = "--port 0") -> Iterator[Serving]:
    process = shell.start(f"serve {options}")
    try:
        yield Serving(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def common_shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A data folder for all who change nothing in it."""
    return Shell(tmp_path_factory.mktemp("common") / "data")


@pytest.fixture(scope="module")
def common_server(common_shell: Shell) -> Iterator[Serving]:
    """A server on that folder, in its first start."""
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        with serving(common_shell) as server:
            yield server


def paste(line: str) -> httpx.Response:
    """Do what a shell and curl would do with the line."""
    words = shlex.split(line)
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1] if "-d" in words else None
    return httpx.request("POST" if body else "GET", words[1], headers=headers, content=body, timeout=300)


@pytest.mark.long
def test_a_first_start_makes_a_key_and_prints_lines_that_work(shell: Shell):
    with serving(shell) as server:
        key = (shell.data / "first-key").read_text().strip()
        assert "no vendor is configured: the built-in engines serve" in server.welcome
        assert "is missing" not in server.welcome
        assert f"{server.address}/docs" in server.welcome
        assert str(shell.data) in server.welcome
        chat, video, model, jobs = (paste(line.replace("$PENSTOCK_API_KEY", key)) for line in server.curls)
        assert chat.status_code == 200
        assert chat.json()["choices"][0]["finish_reason"] in {"stop", "length"}
        for started, name in ((video, "vendorb_video_31"), (model, "vendora_image_to_model")):
            assert started.status_code in {200, 202}, started.text  # 202 where 30 seconds are too few for the machine
            path, done = f"/api/v1/jobs/{started.json()['id']}?wait=50", started.json()
            while not done["done"]:
                done = server.get(path, key).json()
            assert (done["status"], done["model"]) == ("succeeded", name)
        assert [job["id"] for job in jobs.json()["data"]] == [model.json()["id"], video.json()["id"]]
        assert {job["vendor"] for job in jobs.json()["data"]} == {"embedded"}
        assert server.end() == 0
    with serving(shell) as server:
        assert "psk_" not in server.welcome
        assert "penstock key create" in server.welcome
        assert all("$PENSTOCK_API_KEY" in line for line in server.curls)
        assert [key["name"] for key in shell.json("key list")] == ["first key"]


def test_a_first_key_that_no_terminal_shows_is_put_away(common_shell: Shell, common_server: Serving):
    """Logs of containers keep what a server prints for ever."""
    place = common_shell.data / "first-key"
    assert f"Your first API key is in {place}" in common_server.welcome
    assert "psk_" not in common_server.welcome
    assert "penstock key create" in common_server.welcome
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert common_server.get("/api/v1/jobs", place.read_text().strip()).status_code == 200


def test_a_first_start_makes_an_administrators_key_too(common_shell: Shell, common_server: Serving):
    place = common_shell.data / "first-admin-key"
    assert f"The administrator's key is in {place}" in common_server.welcome
    assert "psa_" not in common_server.welcome
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    first = place.read_text().strip()
    assert common_server.get("/admin/v1/accounts", first).status_code == 200
    another = common_shell.json("key admin")["key"]
    assert common_server.get("/admin/v1/accounts", another).status_code == 200
    assert common_server.get("/admin/v1/accounts", first).status_code == 401
    assert common_server.get("/api/v1/jobs", another).status_code == 401


def test_a_terminal_shows_the_first_key_once(shell: Shell):
    leader, follower = pty.openpty()
    process = shell.start("serve --port 0", stdout=follower)
    os.close(follower)
    told = b""
    try:
        with contextlib.suppress(OSError):  # so a terminal ends
            while b"/api/v1/jobs?limit=2" not in told:
                told += os.read(leader, 65536)
    finally:
        process.kill()
        process.communicate()
        os.close(leader)
    assert b"Your API key, shown once: keep it." in told
    assert len(re.findall(rb"\nexport PENSTOCK_API_KEY=psk_[0-9a-z]{18}_[0-9a-z]{38}", told)) == 1
    assert told.count(b"psk_") == 1  # a key in a curl line would stay in the shell's history
    assert len(re.findall(rb"\nexport PENSTOCK_ADMIN_KEY=psa_[0-9a-z]{38}", told)) == 1
    assert not (shell.data / "first-key").exists()


def test_only_models_on_offer_are_in_the_welcome_and_no_key_that_cannot_be_put_away(shell: Shell):
    """Such a key keeps nobody out."""
    (shell.data / "first-key" / "in the way").mkdir(parents=True)
    shell.configure('[vendors.mine]\ntype = "sim"\n[[models]]\nid = "vendorb_video_31"\nvendor = "mine"\n')
    with serving(shell) as server:
        assert len(server.curls) == 2
        assert "vendora" not in server.welcome
        assert "simulator" not in server.welcome
        assert "psk_" not in server.welcome
        made = shell.json("key create")
        assert server.get("/api/v1/jobs", made["key"]).status_code == 200


def test_a_folder_that_was_there_before_is_closed_to_others(shell: Shell):
    old = shell.data / "assets"
    old.mkdir(parents=True, mode=0o755)
    for name, mode in (("penstock.db", 0o644), ("penstock.lock", 0o644)):
        (shell.data / name).touch(mode)
    for folder in (shell.data, old):
        folder.chmod(0o755)
    with serving(shell) as server:
        made = shell.json("key create")
        picture, headers = io.BytesIO(), {"authorization": f"Bearer {made['key']}"}
        Image.new("RGB", (64, 64)).save(picture, "PNG")
        files = {"file": ("a.png", picture.getvalue())}
        sent = httpx.post(f"{server.address}/api/v1/files", headers=headers, files=files, verify=NO_TLS, timeout=300)
        assert sent.is_success, sent.text
        assert [path for path in old.rglob("*") if path.is_file()], "the upload is kept here"
        found = {path.name: path.stat().st_mode & 0o077 for path in (shell.data, *shell.data.rglob("*"))}
        assert {name for name, mode in found.items() if mode} == set()
        assert {"penstock.db", "penstock.db-wal", "penstock.db-shm", "journal", "assets"} <= found.keys()
        assert server.end() == 0


def test_keys_come_and_go_while_a_server_runs(common_shell: Shell, common_server: Serving):
    made = common_shell.json("key create --endpoint read")
    assert common_server.get("/api/v1/jobs", made["key"]).status_code == 200
    common_shell(f"key revoke {made['key']}")
    give_up_at = time.monotonic() + 60
    while common_server.get("/api/v1/jobs", made["key"]).status_code == 200:
        assert time.monotonic() < give_up_at, "the key still works"
    assert common_server.get("/api/v1/jobs", made["key"]).json()["error"]["code"] == "revoked_api_key"


def test_of_several_servers_on_a_folder_one_runs_the_jobs(shell: Shell):
    lock = shell.data / "penstock.lock"
    with serving(shell) as first, serving(shell) as second:
        assert lock.read_text() == f"{first.process.pid}\n"
        assert "another server" not in first.welcome
        assert f"run by another server (process {first.process.pid})" in second.welcome
        assert "first API key" in first.welcome
        assert "first API key" not in second.welcome
        assert first.end() == 0
        second.await_log("this one runs them now")
        assert lock.read_text() == f"{second.process.pid}\n"
        assert second.end() == 0


def test_a_newer_version_does_not_change_the_schema_under_a_running_server(shell: Shell):
    engine = open_file(shell.data / "penstock.db")
    running = Leadership(shell.data)
    assert running.take()
    try:
        schema.upgrade(engine, "0002")
        told = shell("serve --port 0", code=2).stderr
        assert f"Another server (process {os.getpid()})" in told
        assert "earlier schema" in told
        assert schema.current_version(engine) == "0002"
    finally:
        running.release()
        engine.dispose()


def test_doctor_knows_a_running_server(common_shell: Shell, common_server: Serving):
    common_shell.configure(f"[server]\nport = {common_server.address.rpartition(':')[2]}\n")
    assert "ok   port: a Penstock server answers" in common_shell("doctor").stdout


def test_sighup_takes_good_settings_and_refuses_bad_ones(shell: Shell):
    shell.configure('[vendors.mine]\ntype = "sim"\n')
    with serving(shell) as server:
        key = shell.json("key create")["key"]
        for wrong, told in (("[vendors.mine]\ntype = 'sym'\n", "no vendor type `sym`"), ("[server", "is not TOML")):
            shell.configure(wrong)
            server.process.send_signal(signal.SIGHUP)
            line = server.await_log("settings reload refused; the old settings stay in use")
            assert told in json.loads(line)["reason"]
        assert server.get("/api/v1/models/vendora_image_to_model", key).status_code == 200
        shell.configure('[vendors.mine]\ntype = "sim"\n[[models]]\nid = "vendorb_video_31"\nvendor = "mine"\n')
        server.process.send_signal(signal.SIGHUP)
        server.await_log("settings reloaded")
        assert server.get("/api/v1/models/vendora_image_to_model", key).status_code == 404
        counted = httpx.get(f"{server.address}/metrics", verify=NO_TLS, timeout=300).text
        assert 'penstock_settings_reloads_total{outcome="refused"} 2.0' in counted
        assert 'penstock_settings_reloads_total{outcome="ok"} 1.0' in counted
        assert server.end() == 0


def test_a_taken_port_is_told_and_costs_no_key(shell: Shell):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = shell.start(f"serve --port {taken.getsockname()[1]}")
        out, told = process.communicate()
    assert process.returncode == 2
    assert "is in use" in told
    assert "Traceback" not in told
    assert out == ""
    assert not (shell.data / "first-key").exists()
    assert shell.json("key list") == []


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_a_host_that_is_not_here_is_told(shell: Shell, host: str):
    process = shell.start(f"serve --port 0 --host {host}")
    _, told = process.communicate()
    assert process.returncode == 2
    assert f"Cannot listen on {host}:0: " in told
    assert "Traceback" not in told


def test_a_damaged_store_stops_the_start(shell: Shell):
    shell.data.mkdir()
    (shell.data / "penstock.db").write_bytes(b"nothing that SQLite knows" * 1000)
    process = shell.start("serve --port 0")
    _, told = process.communicate()
    assert process.returncode == 2
    assert "file is not a database" in told
    assert "Traceback" not in told


def test_the_sample_picture_is_a_small_png(common_server: Serving):
    encoded = re.search(r"base64,([^\"]+)", common_server.curls[2])
    assert encoded is not None
    assert base64.b64decode(encoded[1]).startswith(b"\x89PNG\r\n\x1a\n")
    assert len(encoded[1]) < 200
