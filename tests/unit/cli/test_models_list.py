"""`penstock models list`: the built-in chat models, with and without settings for their vendors."""

from pathlib import Path

import pytest
from shell import Shell, forget_settings

SMALL, LARGE = "smollm2-135m", "qwen2.5-coder-1.5b"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    forget_settings(monkeypatch)
    monkeypatch.setenv("PENSTOCK_WEIGHTS", str(tmp_path / "weights"))
    return Shell(tmp_path / "data")


def chat_models(shell: Shell) -> dict[str, list[str]]:
    return {model["id"]: model["vendors"] for model in shell.json("models list") if model["kind"] == "chat"}


def test_both_chat_models_are_offered_without_weights_and_the_small_one_comes_first(shell: Shell):
    assert list(chat_models(shell).items()) == [(SMALL, ["local"]), (LARGE, ["local_large"])]
    titles = {model["id"]: model["title"] for model in shell.json("models list")}
    assert "small demonstration model" in titles[SMALL]


def test_settings_of_the_larger_ones_vendor_keep_its_file(shell: Shell):
    shell.configure("[vendors.local_large]\nslots = 1\n")
    assert chat_models(shell)[LARGE] == ["local_large"]


def test_a_vendor_of_its_name_and_another_type_is_left_alone(shell: Shell):
    shell.configure('[vendors.local_large]\ntype = "openai_compatible"\nbase_url = "https://chat.example/v1"\n')
    assert list(chat_models(shell)) == [SMALL]
