"""What the commands that speak to a server do where something is in the way: what they tell, keep and never send."""

import pytest
from flaky_front import Answer, fronting
from remote_shell import VIDEO, Shell
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
