"""What the commands that speak to a server do where something is in the way: what they tell, keep and never send."""

import pytest
from flaky_front import Answer, fronting
from remote_shell import Shell
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
