"""What the commands that speak to a server do where something is in the way: what they tell, keep and never send."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from flaky_front import Answer, Spoil, fronting
from remote_shell import QUICK, VIDEO, Shell
from typer.testing import CliRunner

from penstock.cli.main import app


@pytest.fixture
def shell(stage, key) -> Shell:
    return Shell(stage.url, key)


# -- completion


def complete(shell: Shell, line: str, **environment: str) -> list[str]:
    asked = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    result = CliRunner().invoke(app, [], env={**shell.environment, **asked, **environment}, prog_name="penstock")
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.stdout.split()


def test_completion_shows_the_key_to_no_stranger(shell, front, stage):
    behind = {"http_proxy": front.url, "no_proxy": "", "NO_PROXY": ""}
    assert complete(shell, "penstock generate vendorb", **behind) == ["vendorb_video_31"]
    assert front.seen == []
    with fronting(stage.url) as stranger:
        front.upset("models", Answer(302, {"location": f"{stranger.url}/api/v1/models"}))
        assert complete(shell, "penstock generate vendorb", PENSTOCK_BASE_URL=front.url) == []
        assert stranger.seen == []
    assert len(front.seen) == 1


def test_completion_asks_the_server_that_the_settings_name(shell, stage, tmp_path):
    (tmp_path / "config.toml").write_text(f"[server]\nport = {stage.url.rpartition(':')[2]}\n")
    (tmp_path / "wrong.toml").write_text("[server]\nprot = 9\n")
    line, _ = "penstock generate vendorb", shell.environment.pop("PENSTOCK_BASE_URL")
    assert complete(shell, line, PENSTOCK_DATA=str(tmp_path)) == ["vendorb_video_31"]
    assert complete(shell, line, PENSTOCK_CONFIG=str(tmp_path / "wrong.toml")) == []


def test_completion_is_silent_where_an_answer_is_no_http(shell, front):
    front.upset("models", Answer(200, {"transfer-encoding": "chunked"}, b"no chunk"))
    assert complete(shell, "penstock generate vendorb", PENSTOCK_BASE_URL=front.url) == []


# -- errors for scripts


def test_what_is_wrong_is_told_as_json_wherever_it_was_found(shell):
    def error(line: str, code: int) -> tuple[str, str]:
        told = shell.json(line, code)["error"]
        assert (told["code"], told["param"]) == (None, None)
        return told["type"], told["message"]

    wrong = "invalid_request_error"
    assert error(f"generate {VIDEO} badparam", 2)[0] == wrong
    assert error("chat ''", 2)[0] == wrong
    assert error("jobs list --limit 0", 2)[0] == wrong
    assert "cannot be read" in error("generate sim_image_to_model --file nothing.png", 2)[1]
    assert error("jobs list --base-url http://127.0.0.1:9", 4)[0] == "server_error"
    assert "no chat model" in error("chat hi", 3)[1]
    assert shell("chat -s x -- --json", 3).stdout == ""  # a question, not an option


# -- errors for people


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        ("generate vendorb_video_31", "`prompt` is required.", "Add prompt=VALUE."),
        ("generate vendorb_video_31 prompt=x resolution=9", "resolution: Input should be", ""),
        ("generate nothing prompt=x", 'Unknown model "nothing".', "`penstock models list` shows"),
        ("jobs show job_1", "There is no such job.", "`penstock jobs list` shows"),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_the_command_line(shell, line, message, advice):
    told = shell(line, 3).stderr
    assert told.startswith(message)
    assert advice in told
    assert "input.0" not in told
    assert "GET " not in told


def test_the_list_of_jobs_fits_a_hundred_columns(shell):
    shell(f"generate {VIDEO} {QUICK}")
    shell("generate sim_image_to_model 'script={\"latency\": 3600}' --no-wait")
    lines = shell("jobs list").stdout.splitlines()
    assert len(lines) >= 3
    assert max(len(line.rstrip()) for line in lines) <= 100


# -- results that nothing takes

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="the platform has no device that is always full")


def test_a_place_that_takes_no_result_is_refused_before_anything_is_sent(shell, front, tmp_path):
    shell.environment["PENSTOCK_BASE_URL"] = front.url
    (tmp_path / "a.mp4").touch()
    job_id = shell(f"generate {VIDEO} {QUICK} --no-wait").stdout.strip()
    sent = len(front.seen)
    for place in (tmp_path / "a.mp4" / "x.mp4", f"{tmp_path}/a.mp4/", "~nosuch/x.mp4", "/proc/x/y.mp4"):
        for line in (f"generate {VIDEO}", f"jobs rerun {job_id}", f"jobs watch {job_id}"):
            told = shell.json(f"{line} -o '{place}'", 2)["error"]["message"]
            assert f"--output: {place} " in told
    assert len(front.seen) == sent
    assert [each.name for each in tmp_path.iterdir()] == ["a.mp4"]


def test_a_place_that_can_be_made_is_none_to_refuse(shell, tmp_path):
    (tmp_path / "old.mp4").write_bytes(b"old")
    (tmp_path / "link.mp4").symlink_to("old.mp4")
    for place, file in (("link.mp4", "old.mp4"), ("a/b/new.mp4", "a/b/new.mp4"), ("c/", "c/video.mp4")):
        shell(f"generate {VIDEO} {QUICK} -o {tmp_path}/{place}")
        assert (tmp_path / file).read_bytes()[4:8] == b"ftyp"
    assert (tmp_path / "link.mp4").is_symlink()
    shell(f"generate {VIDEO} {QUICK} -o /dev/null")


@needs_full
def test_a_result_that_cannot_be_saved_leaves_its_record(shell):
    result = shell(f"generate {VIDEO} {QUICK} -o {FULL} --json", 7)
    job = json.loads(result.stdout)
    assert (job["status"], job["saved"]) == ("succeeded", None)
    assert "No space left" in result.stderr
    assert f"penstock jobs watch {job['id']} -o PATH" in result.stderr


def test_a_result_that_cannot_be_fetched_leaves_its_record(shell, front, tmp_path):
    shell.environment["PENSTOCK_BASE_URL"] = front.url
    front.upset("GET /api/v1/assets", Spoil())
    result = shell(f"generate {VIDEO} {QUICK} -o {tmp_path}/x.mp4 --json", 7)
    job = json.loads(result.stdout)
    assert (job["status"], job["saved"]) == ("succeeded", None)
    assert "sha256" in result.stderr
    assert list(tmp_path.iterdir()) == []


@needs_full
@pytest.mark.parametrize("options", ["-o -", "--json", ""])
def test_a_stdout_that_takes_nothing_is_told(shell, options):
    with FULL.open("wb") as full:
        done = shell.start(f"generate {VIDEO} {QUICK} {options}", stdout=full, stderr=subprocess.PIPE)
        told = done.communicate(timeout=300)[1].decode()
    assert done.returncode == 7, told
    assert "No space left" in told
    assert "Exception" not in told


def test_whoever_reads_a_list_may_have_enough(shell):
    for line in ("jobs list", "jobs list --json", f"generate {VIDEO} {QUICK} -o -"):
        reading, writing = os.pipe()
        os.close(reading)
        done = shell.start(line, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        told = done.communicate(timeout=300)[1].decode()
        assert (done.returncode, "Error" in told) == (0, False), told


# -- whatever is typed


def run(shell: Shell, line: str, redirects: str = "", typed: bytes = b"", **environment: str) -> tuple[int, str, str]:
    """A line in a process of its own: exit code, stdout and stderr."""
    shell.environment |= environment
    pipe = subprocess.PIPE
    done = shell.start(line, redirects, stdin=pipe, stdout=pipe, stderr=pipe)
    told, said = done.communicate(typed, timeout=300)
    return done.returncode, told.decode(), said.decode()


@pytest.mark.parametrize(
    ("line", "redirects", "told"),
    [
        ("chat", "<&-", "The question is empty."),
        ("chat -", "<&-", "The question is empty."),
        ("generate sim_image_to_model --file -", "<&-", "--file: stdin is closed."),
        (f"generate {VIDEO} -o -", ">&-", "--output: stdout is closed."),
    ],
)
def test_a_closed_stream_is_told(shell, line, redirects, told):
    assert run(shell, line, redirects) == (2, "", f"{told}\n")


def test_what_is_piped_in_may_be_no_utf8(shell, front):
    body = b'data: {"choices": [{"delta": {"content": "Hello"}}]}\n\ndata: [DONE]\n\n'
    front.upset("POST", *[Answer(200, {"content-type": "text/event-stream"}, body)] * 2)
    for encoding in ("utf-8:strict", "ascii"):
        line, known = "chat -m plain 'Sum up:' -", {"PENSTOCK_BASE_URL": front.url, "PYTHONIOENCODING": encoding}
        assert run(shell, line, typed="café ".encode() + b"caf\xe9", **known) == (0, "Hello\n", "")
        question = json.loads(front.seen[-1].body)["messages"][0]["content"]
        assert question == "Sum up: café caf\N{REPLACEMENT CHARACTER}"


def test_a_param_may_have_any_name(shell):
    job_id = shell(f"generate {VIDEO} {QUICK} --no-wait").stdout.strip()
    for name in ("job_id", "self", "changes"):
        told = shell.json(f"jobs rerun {job_id} {name}=5", 3)["error"]
        assert (told["code"], told["param"]) == ("unknown_param", f"input.0.params.{name}")


def test_brackets_upon_brackets_are_text_or_refused(shell):
    deep = "[" * 20_000
    (given,) = shell.json(f"generate vendorb_video_31 --dry-run 'prompt={deep[:4000]}'")["input"]
    assert given["prompt"] == deep[:4000]
    assert shell.json(f"generate vendorb_video_31 --dry-run 'prompt={deep}'", 3)["error"]["code"] == "invalid_params"
    nested = "[" * 900 + "]" * 900  # JSON, or text where this process has too little stack left to read it
    refused = CliRunner().invoke(app, ["generate", "vendorb_video_31", f"prompt={nested}"], env=shell.environment)
    assert refused.exit_code == (2 if "too deep" in refused.output else 3), refused.output
    assert "Traceback" not in refused.output


@pytest.mark.parametrize("host", ["a..b", "☃.net", "日..jp", "[v1.x]:80"])
def test_a_host_that_can_be_none_is_told(shell, host):
    shell.environment["PENSTOCK_BASE_URL"] = f"http://{host}"
    assert "address" in shell.json("jobs list", 2)["error"]["message"]
