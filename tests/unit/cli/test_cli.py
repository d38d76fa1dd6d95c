"""The command line: what each command prints, refuses and leaves behind."""

import contextlib
import json
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shell import Shell, forget_settings
from signers import make_signer
from typer.main import get_command
from typer.testing import CliRunner

from penstock import __version__
from penstock.cli.main import app
from penstock_sandbox import sandbox

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    forget_settings(monkeypatch)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


# -- the whole


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"penstock {__version__}\n"


def _commands(command: Any, path: str = "penstock") -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from _commands(inner, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), list(_commands(get_command(app))), ids=str)
def test_every_command_and_option_is_documented(path: str, command: Any):
    general, *sections = PAGE.split("\n## ")
    section = next(text for text in sections if text.startswith(f"`{path}`\n"))
    options = {option for param in command.params for option in param.opts if option.startswith("--")} - {"--help"}
    assert {"--data", "--config"} <= options
    for option in options:
        assert f"`{option}" in section + general, option
    example = re.search(r"```sh\n(.*)\n```", section)
    assert example is not None
    assert path in example[1]


def test_page_names_no_command_that_is_not():
    told = set(re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE))
    assert told == {path for path, _ in _commands(get_command(app))}


@pytest.mark.parametrize(
    ("line", "light"),
    [
        ("--help", {"fastapi", "aiohttp", "sqlalchemy", "pydantic"}),
        ("key create --data {data}", {"fastapi", "aiohttp", "uvicorn"}),
    ],
)
def test_commands_load_only_what_they_need(line: str, light: set[str], tmp_path: Path):
    arguments = shlex.split(line.format(data=tmp_path))
    program = (
        "import sys; from penstock.cli.main import app; app(sys.argv[1:], standalone_mode=False);"
        f"print('loaded', *sorted({light!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "loaded"


# -- keys


def test_a_key_is_printed_alone_so_that_scripts_can_take_it(shell: Shell):
    result = shell("key create")
    assert re.fullmatch(r"psk_[0-9a-z]{18}_[0-9a-z]{38}\n", result.stdout)
    assert "Shown once" in result.stderr


def test_a_key_carries_what_was_asked(shell: Shell):
    line = "key create --account studio --name 'a [red] one' --endpoint read --endpoint generate --expires 30d"
    made = shell.json(f"{line} --model vendorb_video_31 --model vendora_image_to_model")
    assert made["key"].startswith(f"psk_{made['public_id']}_")
    assert made["account"] == "studio"
    assert made["account_id"].startswith("acct_")
    assert made["name"] == "a [red] one"
    assert made["models"] == ["vendora_image_to_model", "vendorb_video_31"]
    assert made["endpoints"] == ["generate", "read"]
    assert made["created_at"].endswith("Z")
    assert made["created_at"][:10] < made["expires_at"][:10]


def test_keys_of_one_account_share_its_id_and_have_no_limits_unless_asked(shell: Shell):
    first, second = shell.json("key create"), shell.json("key create")
    assert first["account_id"] == second["account_id"]
    assert (first["models"], first["endpoints"], first["expires_at"]) == ([], [], None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--model vendorb_video_32", "Did you mean `vendorb_video_31`?"),
        ("--expires soon", '"30d"'),
        ("--expires 0", "more than 0"),
        ("--account ' '", "--account: should be 1 to 200 printable characters"),
        ("--name 'a\x1b[2Jb'", "--name: should be 0 to 200 printable characters"),
        ("--endpoint write", "generate"),
    ],
)
def test_a_wrong_wish_makes_no_key(shell: Shell, options: str, told: str):
    assert told in shell(f"key create {options}", code=2).stderr
    assert shell.json("key list") == []


def test_list_tells_the_status_and_never_a_secret(shell: Shell):
    made = [shell.json(f"key create --name '{name}'") for name in ("one", "[bold]two", "three")]
    shell(f"key revoke {made[1]['public_id']}")
    with contextlib.closing(sqlite3.connect(shell.data / "penstock.db")) as store, store:
        store.execute("UPDATE keys SET expires_at = 1 WHERE public_id = ?", (made[2]["public_id"],))
    listed = shell.json("key list")
    assert [key["status"] for key in listed] == ["active", "revoked", "expired"]
    assert [key["public_id"] for key in listed] == [key["public_id"] for key in made]
    shown = shell("key list").stdout + json.dumps(listed)
    assert "[bold]two" in shown
    assert not any(key["key"].rpartition("_")[2] in shown for key in made)


def test_a_key_is_revoked_by_its_id_or_as_a_whole(shell: Shell):
    first, second = shell.json("key create"), shell.json("key create")
    shell(f"key revoke {first['public_id']}")
    assert second["key"].rpartition("_")[2] not in shell(f"key revoke {second['key']}").output
    assert {key["status"] for key in shell.json("key list")} == {"revoked"}


def test_an_unknown_key_cannot_be_revoked(shell: Shell):
    told = shell("key revoke psk_nobody_secret", code=1).stderr
    assert "no key nobody" in told
    assert "secret" not in told


# -- models


def test_models_come_from_the_settings(shell: Shell):
    shell.configure("""
        [vendors.mine]
        type = "sim"
        [vendors.other]
        type = "sim"
        [[models]]
        id = "vendorb_video_31"
        routes = [{vendor = "other", order = 2}, {vendor = "mine"}]
        price = {per_job = "0.20", per_second = "0.40", per_job_if = {texture = "0.10"}}
        """)
    [listed] = shell.json("models list")
    assert listed["id"] == "vendorb_video_31"
    assert listed["kind"] == "video"
    assert listed["vendors"] == ["mine", "other"]
    assert listed["price"] == {
        "per_job": "0.20",
        "per_second": "0.40",
        "per_image": "0.00",
        "per_thousand_faces": "0.00",
        "per_job_if": {"texture": "0.10"},
        "per_second_if": {},
        "per_image_if": {},
        "seconds": 8,
        "faces": None,
        "currency": "USD",
    }
    assert "USD 0.20 + 0.40 per second + 0.10 if texture" in shell("models list").stdout


def test_prices_that_differ_or_change_are_shown_by_vendor(shell: Shell):
    assert "until" not in shell("models show vendorb_video_31").stdout
    shell.configure("""
        [vendors.mine]
        type = "sim"
        [vendors.other]
        type = "sim"
        [[models]]
        id = "vendorb_video_31"
        routes = [{vendor = "mine"}, {vendor = "other", order = 2}]
        price = {per_job = "0.20"}
        [[prices]]
        model = "vendorb_video_31"
        vendor = "other"
        from = "9000-01-01"
        price = {per_second = "0.40"}
        """)
    shown = shell("models show vendorb_video_31").stdout
    assert "price: USD 0.20" in shown
    moment = "9000-01-01T00:00:00.000Z"
    for line in (r"mine +USD 0\.20 *", rf"other +{moment} +USD 0\.20 *", rf"other +{moment} +USD 0\.40 per second *"):
        assert re.search(f"^{line}$", shown, re.MULTILINE), line
    told = shell.json("models show vendorb_video_31")["prices"]
    assert [(each["vendor"], each["from"], each["until"]) for each in told] == [
        ("mine", None, None),
        ("other", None, moment),
        ("other", moment, None),
    ]


def test_a_model_is_shown_with_all_its_params(shell: Shell):
    rows = {line.split()[0]: line for line in shell("models show vendorb_video_31").stdout.splitlines() if line}
    assert re.search(r"string +required +1 to 4000 characters +what the video shows", rows["prompt"])
    assert re.search(r"integer +8 +4, 6, 8 +length", rows["durationSeconds"])
    nested = shell("models show vendora_image_to_model").stdout
    assert re.search(r"^file +object +required", nested, re.MULTILINE)
    assert re.search(r"^file\.object\.bucket +string +required +1 to 255 characters", nested, re.MULTILINE)
    assert re.search(r"^texture +boolean +true", nested, re.MULTILINE)


def test_a_model_is_shown_as_json_with_its_schema(shell: Shell):
    shown = shell.json("models show vendorb_video_31")
    assert shown["params"]["required"] == ["prompt"]
    assert shown["example"]["prompt"]


def test_an_unknown_model_is_told_with_the_nearest(shell: Shell):
    assert "Did you mean `vendorb_video_31`?" in shell("models show vendorb_video", code=1).stderr


# -- errors for scripts


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("key show nosuch", 1, ("not_found_error", "key_not_found", "no key nosuch")),
        ("account show nosuch", 1, ("not_found_error", "account_not_found", "nosuch")),
        ("usage --account nosuch", 1, ("not_found_error", "account_not_found", "nosuch")),
        ("models show nosuch", 1, ("invalid_request_error", "model_not_found", "nosuch")),
        ("key create --budget abc", 2, ("invalid_request_error", None, "--budget: an amount")),
        ("key create --endpoint write", 2, ("invalid_request_error", None, "'--endpoint'")),
        ("key lisst", 2, ("invalid_request_error", None, "Did you mean 'list'?")),
    ],
)
def test_what_is_wrong_is_told_as_json_too(shell: Shell, line: str, code: int, told: tuple[str, str | None, str]):
    result = shell(f"{line} --json", code)
    error = json.loads(result.stdout)["error"]
    assert (error["type"], error["code"]) == told[:2]
    assert told[2] in error["message"]
    assert "param" in error
    assert result.stderr


# -- a pipe that ends early


@pytest.mark.parametrize(
    "line",
    [
        "models show vendorb_video_31",
        "key list --json",
        "doctor",
        *(pytest.param(line, marks=pytest.mark.long) for line in ("key list", "usage")),
    ],
)
def test_whoever_reads_may_have_enough(shell: Shell, line: str):
    shell("key create")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "penstock", *shlex.split(line), "--data", str(shell.data)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


# -- settings, store and simulator


@pytest.mark.parametrize("line", ["key create", "key list", "models list", "sim", "serve"])
def test_wrong_settings_are_told_with_place_and_remedy(shell: Shell, line: str):
    shell.configure("[server]\nprot = 1\n")
    told = shell(line, code=2).stderr
    assert "config.toml:2 [server] prot" in told
    assert "Did you mean `port`?" in told


def test_a_store_of_a_newer_version_is_left_alone(shell: Shell):
    shell("key create")
    with contextlib.closing(sqlite3.connect(shell.data / "penstock.db")) as store, store:
        store.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "schema 9999" in shell("key list", code=2).stderr
    assert "schema 9999" in shell("doctor", code=1).stdout


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    shell = Shell(tmp_path / "file" / "data")
    assert "Not a directory" in shell("key create", code=2).stderr
    assert "fail data folder" in shell("doctor", code=1).stdout


def test_sim_counts_accepted_orders(shell: Shell):
    shell.configure('[vendors.mine]\ntype = "sim"\n[vendors.far]\ntype = "sim"\nbase_url = "http://127.0.0.1:1"\n')
    nothing = {"orders": 0, "jobs": 0, "duplicates": 0}
    assert shell.json("sim") == {"mine": nothing, "sim": nothing}
    assert re.search(r"mine +0 +0 +0", shell("sim").stdout)


# -- doctor


def _statuses(report: Any) -> dict[str, str]:
    return {finding["check"]: finding["status"] for finding in report["checks"]}


def test_doctor_on_a_fresh_folder_finds_no_failure_and_makes_nothing(shell: Shell):
    shell.configure('weights = "weights"\n[server]\nport = 0\n')
    shell.data.chmod(0o700)
    report = shell.json("doctor")
    assert report["ok"]
    assert _statuses(report) == {
        "settings": "ok",
        "data folder": "ok",
        "assets folder": "ok",
        "permissions": "ok",
        "disk": "ok",
        "store": "ok",
        "certificate": "ok",
        "vendors": "ok",
        "models": "ok",
        "sandbox": "warn" if sandbox.survey().missing else "ok",
        "engines": "ok",
        "weights": "warn",
        "port": "ok",
    }
    assert [file.name for file in shell.data.iterdir()] == ["config.toml"]


def test_doctor_tells_a_vendors_problem_beside_anothers_health(shell: Shell):
    shell.configure("""
        server.port = 0
        [vendors.good]
        type = "sim"
        [vendors.bare]
        type = "sim"
        base_url = "http://127.0.0.1:1"
        [vendors.bad]
        type = "sym"
        [vendors.worse]
        type = "sim"
        pol_seconds = 1
        """)
    told = shell("doctor", code=1).stdout
    assert "ok   vendor good" in told
    assert "warn vendor bare" in told
    assert "fail vendor bad" in told
    assert "Did you mean `sim`?" in told
    assert "Did you mean `poll_seconds`?" in told


def test_doctor_tells_what_is_open_to_others_and_a_command_closes_it(shell: Shell):
    shell("key create")
    assert shell.data.stat().st_mode & 0o777 == 0o700
    assert "ok   permissions" in shell("doctor").stdout
    shell.data.chmod(0o755)
    (shell.data / "penstock.db").chmod(0o644)
    told = shell("doctor").stdout
    assert f"warn permissions: {shell.data}/penstock.db is open to other users of this machine (mode 0644)" in told
    assert "chmod go-rwx" in told
    shell("key list")
    assert (shell.data / "penstock.db").stat().st_mode & 0o777 == 0o600
    assert "warn permissions" not in shell("doctor").stdout


def test_doctor_tells_of_secrets_in_a_file_that_others_may_read(shell: Shell, tmp_path: Path, monkeypatch):
    config, link = tmp_path / "penstock.toml", tmp_path / "link.toml"
    link.symlink_to(config)
    vendor = '[vendors.far]\ntype = "openai_compatible"\nbase_url = "https://far.example/v1"\napi_key = "{}"\n'
    monkeypatch.setenv("FAR_KEY", "sk-far-away-4711")
    for key, mode, warned in (
        ("sk-far-away-4711", 0o644, True),
        ("sk-far-away-4711", 0o600, False),
        ("env:FAR_KEY", 0o644, False),
    ):
        config.write_text(vendor.format(key))
        config.chmod(mode)
        told = shell(f"doctor --config {link}").stdout
        assert ("warn settings file" in told) is warned
        assert "sk-far-away" not in told


@pytest.mark.parametrize(("days", "status"), [(400, "ok"), (20, "warn")])
def test_doctor_tells_whose_certificate_signs_and_when_it_ends(shell: Shell, tmp_path: Path, days: int, status: str):
    acme = make_signer("Acme Studio", days=days)
    (tmp_path / "chain.pem").write_text(acme.chain)
    (tmp_path / "key.pem").write_text(acme.key)
    (tmp_path / "key.pem").chmod(0o644)
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    shell.configure(f'[server]\nport = 0\n[provenance]\ncertificate = "{chain}"\nprivate_key = "{key}"\n')
    found = {finding["check"]: finding for finding in shell.json("doctor")["checks"]}
    assert (found["certificate"]["status"], "Acme Studio" in found["certificate"]["message"]) == (status, True)
    assert (found["secret file"]["status"], str(key) in found["secret file"]["remedy"]) == ("warn", True)
    key.chmod(0o600)
    assert "secret file" not in _statuses(shell.json("doctor"))
    shell.configure('[server]\nport = 0\n[provenance]\nresults = "unsigned"\n')
    assert "results are not signed" in shell("doctor").stdout
    shell.configure("[server]\nport = 0\n")
    assert "nobody else trusts" in shell("doctor").stdout


def test_doctor_reminds_of_a_first_key_that_lies_about(shell: Shell):
    shell.configure("")
    (shell.data / "first-key").write_text("psk_something_secret\n")
    told = shell("doctor").stdout
    assert "warn first key" in told
    assert "psk_" not in told


def test_doctor_wants_a_key_that_works(shell: Shell):
    shell.configure("server.port = 0")
    shell(f"key revoke {shell.json('key create')['public_id']}")
    assert "penstock key create" in shell("doctor").stdout
    shell("key create")
    assert "ok   keys: 1 of 2" in shell("doctor").stdout


def test_doctor_sees_a_damaged_store(shell: Shell):
    shell("key create")
    (shell.data / "penstock.db").write_bytes(b"nothing that SQLite knows" * 1000)
    assert "fail store" in shell("doctor", code=1).stdout
    assert "cannot be used" in shell("key list", code=2).stderr


def test_doctor_sees_a_port_that_something_else_has(shell: Shell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        shell.configure(f"[server]\nport = {taken.getsockname()[1]}\n")
        assert "fail port" in shell("doctor", code=1).stdout
