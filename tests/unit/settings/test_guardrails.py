"""`[[guardrails]]`: mistakes are reported with their place and a remedy, and a hook's secret is one."""

from pathlib import Path
from typing import Any

import pytest
from guard_hook import SECRET

from penstock.settings.problems import SettingsError
from penstock.settings.tables import Settings, load


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    config = folder / "penstock.toml"
    config.write_text(text)
    return load(config, environ or {}, {"data": folder})


RULE, HOOK = 'words = ["bomb"]', 'url = "http://127.0.0.1:9/x"'
MISTAKES: dict[str, Any] = {
    'url = "ftp://a/b"': "is not an http(s) URL",
    'url = "http://user:pw@a/b"': "is not an http(s) URL",
    'url = "http://[::1/"': "is not an http(s) URL",
    f"{HOOK}\n{RULE}": "needs either",
    "": "needs either",
    f'{HOOK}\nsecret = "short"': "whsec_",
    f"{HOOK}\ntimeout_seconds = 0": "greater than 0",
    f"{HOOK}\ntimeout_seconds = 61": "less than or equal to 60",
    f'{HOOK}\naction = "annotate"': "no effect on a hook",
    f'{HOOK}\nreason = "no"': "no effect on a hook",
    f'{RULE}\non_failure = "allow"': "no effect on a rule",
    f'{RULE}\nsecret = "{SECRET}"': "no effect on a rule",
    f'{RULE}\non_failures = "allow"': "Did you mean `on_failure`?",
    f'{RULE}\napplies_to = ["chats"]': "'chat' or 'generation'",
    f"{RULE}\napplies_to = []": "at least 1",
    'words = ["c++"]': "`c++` is not a word or phrase",
    'words = [""]': "at least 1 character",
    'patterns = ["(?=a)"]': "look-around",
    'patterns = ["a*"]': "matches every text",
    f'{RULE}\nname = "a b"': "name",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    name = "" if "name =" in mistake else 'name = "x"\n'
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, f"[[guardrails]]\n{name}{mistake}\n")
    problems = [str(problem) for problem in caught.value.problems]
    assert any(MISTAKES[mistake] in problem and "[[guardrails]] 1" in problem for problem in problems), problems
    assert SECRET not in str(problems)


def test_two_of_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="two have the name `x`"):
        read(tmp_path, f'[[guardrails]]\nname = "x"\n{RULE}\n' * 2)


@pytest.mark.parametrize("given", ["env:HOOK", "file:secret.txt", SECRET])
def test_a_secret_may_stand_elsewhere(tmp_path: Path, given: str) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    text = f'[[guardrails]]\nname = "x"\n{HOOK}\nsecret = "{given}"\n'
    settings = read(tmp_path, text, {"HOOK": SECRET})
    (table,) = settings.guardrails
    assert table.secret is not None
    assert table.secret.get_secret_value() == SECRET
    assert SECRET in settings.secrets
    assert SECRET not in repr(settings)


def test_words_that_look_like_a_reference_are_words(tmp_path: Path) -> None:
    text = '[[guardrails]]\nname = "x"\npatterns = ["env:HOME", "file:secret.txt"]\n'
    assert read(tmp_path, text).guardrails[0].patterns == ("env:HOME", "file:secret.txt")
