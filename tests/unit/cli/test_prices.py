"""`penstock prices`: differences, a yes, dated rows, drift and removal on the command line."""

import json

import pytest
from cli.shell import Shell, forget_settings

FILM = "runway_gen45_text_to_video"


@pytest.fixture
def shell(tmp_path, monkeypatch) -> Shell:
    forget_settings(monkeypatch)
    (tmp_path / "config.toml").write_text(
        f'[vendors.r]\ntype = "runway"\napi_key = "key_x"\n[[models]]\nid = "{FILM}"\nvendor = "r"\n'
    )
    return Shell(tmp_path)


def rows(shell: Shell) -> list[tuple[str, str, str]]:
    return [
        (row["model"], row["status"], row["source"]) for row in json.loads(shell("prices list --past --json").stdout)
    ]


def test_nothing_is_written_without_a_yes(shell):
    assert "0.12" in shell("prices update --from shipped --dry-run").stdout
    assert "--yes" in shell("prices update --from shipped", 1).output
    assert rows(shell) == []


def test_a_list_is_written_once_and_ended(shell):
    done = json.loads(shell("prices update --from shipped --yes --json").stdout)
    assert (done["written"], done["findings"][0]["verdict"]) == (1, "new")
    assert json.loads(shell("prices update --from shipped --yes --json").stdout)["written"] == 0
    assert "per_second 0.12" in shell("prices list").stdout
    assert "differ from the list: 0" in shell("prices report").stdout
    assert "ends at" in shell("prices remove 1").stdout
    assert [row[1] for row in rows(shell)] == ["ended"]
    assert json.loads(shell("prices report --json").stdout)["unpriced"] == [{"model": FILM, "vendor": "r"}]
    shell("prices remove 2", 1)


def test_a_file_with_a_mapping_and_a_day_to_come(shell, tmp_path):
    entry = {"litellm_provider": "other", "mode": "video_generation", "output_cost_per_second": 0.5}
    (tmp_path / "list.json").write_text(json.dumps({"film": entry, "film2": {**entry, "output_cost_per_second": "x"}}))
    update = f"prices update --from {tmp_path}/list.json --yes --effective 2100-01-01"
    assert "Nothing was written" in shell(update).stdout
    assert "not a number" in shell(f"{update} --map r/{FILM}=film2").stdout
    assert "Prices written: 1" in shell(f"{update} --map r/{FILM}=film").stdout
    assert rows(shell) == [(FILM, "coming", "list.json")]


def test_models_that_were_added_at_run_time_have_prices_too(shell):
    vendor = {"type": "openai_compatible", "base_url": "https://api.example.com/v1", "api_key": "sk-not-a-key"}
    shell(f"config set vendors.acme '{json.dumps(vendor)}'")
    shell('config set models.acme-chat \'{"kind": "chat", "vendor": "acme"}\'')
    assert {each["model"] for each in json.loads(shell("prices list --json").stdout)} == {FILM, "acme-chat"}


@pytest.mark.parametrize(
    "options",
    [
        "--from absent.json",
        "--from shipped --map r",
        "--from shipped --effective 2020-01-01",
        "--from http://127.0.0.1/x",
    ],
)
def test_what_cannot_be_done_is_refused(shell, options):
    shell(f"prices update --yes {options}", 2)
    assert rows(shell) == []
