"""People on the command line."""

import shutil
from pathlib import Path

import pytest
from shell import Shell, forget_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    forget_settings(monkeypatch)


@pytest.fixture
def shell(tmp_path: Path, empty_store: Path) -> Shell:
    shutil.copy(empty_store, tmp_path)  # so that no command has to make it
    return Shell(tmp_path)


def test_people_come_get_roles_and_leave(shell: Shell):
    assert "There are no people yet" in shell("people list").stdout
    made = shell("people add Ada@Example.org --account mill --role owner --name Ada").stdout.strip()
    assert made.startswith("person_")
    assert shell.json("people role ada@example.org viewer --account mill")["accounts"][0]["role"] == "viewer"
    assert shell.json("people add ada@example.org --account weaver")["id"] == made
    assert shell.json("people operator ada@example.org")["operator"] is True
    listed = shell.json("people list --account weaver")
    assert [(each["account"], each["role"]) for each in listed[0]["accounts"]] == [
        ("mill", "viewer"),
        ("weaver", "member"),
    ]
    assert shell.json(f"people remove {made} --account weaver")["accounts"][0]["account"] == "mill"
    gone = shell.json("people deactivate ada@example.org")
    assert (gone["accounts"], gone["operator"], gone["deactivated_at"] is None) == ([], False, False)
    assert "deactivated" in shell("people list").stdout
    assert shell.json("people activate ada@example.org")["deactivated_at"] is None


def test_keys_of_people_keep_within_the_limits(shell: Shell):
    shell("people add ada@example.org --account mill")
    assert shell.json("people limits mill --max-keys 1 --max-budget 2.50") == {"max_keys": 1, "max_budget": "2.50"}
    made = shell.json("people key ada@example.org --account mill --name notebook")
    assert made["budgets"][0]["cap"] == "2.50"
    refused = shell("people key ada@example.org --account mill", 1)
    assert "The account allows 1 keys for each person." in refused.stderr
    assert shell.json("people limits mill --max-budget none")["max_budget"] is None
    hidden = next(key for key in shell.json("key list") if key["name"] == "Console of ada@example.org")
    assert "It has no text" in shell(f"key rotate {hidden['public_id']}", 1).stderr
    shell("people remove ada@example.org --account mill")
    assert {key["status"] for key in shell.json("key list")} == {"revoked"}


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("people add nobody", 2, "should be an e-mail address"),
        ("people role nobody@example.org member --account mill", 1, "There is no person"),
        ("people limits nowhere --max-keys 1", 1, "There is no account"),
        ("people limits nowhere --max-budget much", 2, "--max-budget"),
    ],
)
def test_wrong_words_are_refused(shell: Shell, command: str, code: int, message: str):
    assert message in shell(command, code).stderr


def test_sessions_are_listed_and_ended_on_the_command_line(shell: Shell):
    shell("people add ada@example.org --account mill")
    assert "is not signed in" in shell("people sessions ada@example.org").stdout
    assert shell.json("people sessions ada@example.org") == []
    assert shell.json("people sign-out ada@example.org") == {"ended": 0}
    assert shell.json("people unlink ada@example.org")["email"] == "ada@example.org"
    assert shell("people sessions nobody@example.org", code=1).exit_code == 1
