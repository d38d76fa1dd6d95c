"""Accounts, keys, budgets and the audit log on the command line: what is printed, refused and left behind."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from shell import Shell, forget_settings

NO_LIMITS = dict.fromkeys(("requests_per_minute", "tokens_per_minute", "concurrent_jobs", "concurrent_streams"))
ALL_LIMITS = "--requests-per-minute 60 --tokens-per-minute 1000 --concurrent-jobs 2 --concurrent-streams 3"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    forget_settings(monkeypatch)


@pytest.fixture
def shell(tmp_path: Path, empty_store: Path) -> Shell:
    shutil.copy(empty_store, tmp_path)  # so that no command has to make it
    return Shell(tmp_path)


# -- accounts


def test_an_account_needs_no_key(shell: Shell):
    made = shell("account create studio").stdout.strip()
    assert re.fullmatch(r"acct_[0-9a-z]{26}", made)
    shown = shell.json("account show studio")
    assert shown == {
        "object": "account",
        "id": made,
        "name": "studio",
        "created_at": shown["created_at"],
        "closed_at": None,
        "limits": NO_LIMITS,
        "budgets": [],
        "tag_budgets": [],
        "storage": {"bytes": 0, "quota": None},
        "content_log": False,
        "keys": 0,
    }
    assert shell.json(f"account show {made}") == shown
    assert shell.json("account list") == [shown]
    assert shell.json("key list") == []
    assert "already" in shell("account create studio", code=1).stderr


def test_an_account_with_limits_and_a_budget(shell: Shell):
    line = f"account create studio {ALL_LIMITS} --budget 10.5 --budget-period month --budget-time-zone Europe/Berlin"
    made = shell.json(line)
    assert made["limits"] == {
        "requests_per_minute": 60,
        "tokens_per_minute": 1000,
        "concurrent_jobs": 2,
        "concurrent_streams": 3,
    }
    [budget] = made["budgets"]
    assert (budget["cap"], budget["period"], budget["time_zone"]) == ("10.50", "month", "Europe/Berlin")
    assert "concurrent jobs 2" in shell("account list").stdout
    assert "0.00 of 10.50 per month" in shell("account list").stdout
    assert re.search(r"budget, month +0.00 spent and 0.00 held of 10.50 USD", shell("account show studio").stdout)


def test_limits_are_changed_one_by_one_and_taken_away_by_0(shell: Shell):
    shell(f"account create studio {ALL_LIMITS}")
    changed = shell.json("account limits studio --concurrent-jobs 9 --tokens-per-minute 0")
    assert changed["limits"] == {
        "requests_per_minute": 60,
        "tokens_per_minute": None,
        "concurrent_jobs": 9,
        "concurrent_streams": 3,
    }
    assert "Usage" in shell("account limits studio --concurrent-jobs -1", code=2).stderr


def test_budgets_are_set_replaced_and_removed(shell: Shell):
    shell("account create studio")
    shell("account budget studio --amount 10 --period month")
    shell("account budget studio --amount 12 --period month --time-zone Asia/Tokyo")
    shown = shell.json("account budget studio --amount 1 --period day")
    assert [(each["period"], each["cap"], each["time_zone"]) for each in shown["budgets"]] == [
        ("day", "1.00", "UTC"),
        ("month", "12.00", "Asia/Tokyo"),
    ]
    assert [each["period"] for each in shell.json("account budget studio --period month --remove")["budgets"]] == [
        "day"
    ]
    assert "no budget" in shell("account budget studio --period month --remove", code=1).stderr
    for line in ("", "--amount 5 --remove"):
        assert "--amount, or --remove" in shell(f"account budget studio {line}", code=2).stderr
    assert "--amount: an amount is" in shell("account budget studio --amount ten", code=2).stderr
    assert "such as Europe/Berlin" in shell("account budget studio --amount 1 --time-zone Europe/Berln", code=2).stderr


def test_an_account_is_renamed_closed_and_reopened(shell: Shell):
    key = shell.json("key create --account studio")
    shell("account create other")
    assert shell.json("account rename studio atelier")["name"] == "atelier"
    assert "already" in shell("account rename atelier other", code=1).stderr
    assert "should be 1 to 200" in shell("account rename atelier ' '", code=2).stderr
    closed = shell.json("account close atelier")
    assert closed["closed_at"] is not None
    assert shell.json("account close atelier") == closed
    assert shell.json(f"key show {key['public_id']}")["status"] == "closed"
    assert re.search(r"atelier +closed", shell("account list").stdout)
    assert "Reopen it first" in shell("key create --account atelier", code=1).stderr
    assert "no key can be used" in shell("doctor", code=0).stdout
    assert shell.json("account reopen atelier")["closed_at"] is None
    assert shell.json(f"key show {key['public_id']}")["status"] == "active"


def test_an_account_that_is_not_there(shell: Shell):
    for line in (
        "account show nobody",
        "account limits nobody --concurrent-jobs 1",
        "account close nobody",
        "account reopen nobody",
        "account rename nobody other",
        "account budget nobody --amount 1",
        "key list --account nobody",
        "key create --account acct_nobody",
        "audit --account nobody",
    ):
        assert "`penstock account list` lists them." in shell(line, code=1).stderr
    assert shell.json("account list") == shell.json("audit") == []


# -- keys


def test_a_key_with_limits_and_a_budget(shell: Shell):
    made = shell.json(f"key create --account studio {ALL_LIMITS} --budget 1 --budget-period day")
    assert made["limits"]["concurrent_streams"] == 3
    assert [(each["of"], each["period"], each["cap"]) for each in made["budgets"]] == [("key", "day", "1.00")]
    shown = shell.json(f"key show {made['key']}")
    assert shown == {name: value for name, value in made.items() if name != "key"}
    assert made["key"].rpartition("_")[2] not in shell(f"key show {made['key']}").output
    assert [key["public_id"] for key in shell.json("key list --account studio")] == [made["public_id"]]
    assert "0.00 of 1.00 per day" in shell("key list").stdout


def test_a_wrong_wish_leaves_nothing_behind(shell: Shell):
    for options, code, told in (
        ("--budget -1", 2, "--budget: an amount is"),
        ("--budget 10000000000", 2, "--budget: an amount is"),
        ("--budget 1000000001", 2, "--budget: should be at most"),
        ("--budget 1 --budget-period week", 2, "month"),
        ("--budget 1 --budget-time-zone Mars", 2, "--budget-time-zone: should be the IANA name"),
        ("--account acct_mine", 1, "no account"),
    ):
        assert told in shell(f"key create {options}", code=code).stderr
    assert shell.json("key list") == shell.json("account list") == shell.json("audit") == []


def test_a_key_is_changed(shell: Shell):
    made = shell.json("key create --name one --model vendorb_video_31 --expires 30d --concurrent-jobs 2")
    line = f"key change {made['public_id']} --name two --model all --endpoint chat --expires never --concurrent-jobs 0"
    changed = shell.json(line)
    assert (changed["name"], changed["models"], changed["endpoints"]) == ("two", [], ["chat"])
    assert (changed["expires_at"], changed["limits"]) == (None, NO_LIMITS)
    assert shell.json(f"key change {made['public_id']}") == changed
    assert "--expires: should be more than 0" in shell(f"key change {made['public_id']} --expires 0", code=2).stderr
    assert "there is no model" in shell(f"key change {made['public_id']} --model nothing", code=2).stderr
    assert "`penstock key list`" in shell("key change nobody --name x", code=1).stderr
    assert [line["action"] for line in shell.json("audit")] == ["key.changed", "key.created", "account.created"]


def test_a_key_is_rotated(shell: Shell):
    old = shell.json("key create --account studio --name site --budget 5")
    new = shell.json(f"key rotate {old['public_id']} --overlap 2h")
    assert new["key"] != old["key"]
    assert (new["lineage"], new["name"], new["budgets"]) == (old["public_id"], "site", old["budgets"])
    shown = shell.json(f"key show {old['public_id']}")
    assert (shown["status"], shown["replaced_by"]) == ("active", new["public_id"])
    assert f"Rotate {new['public_id']}." in shell(f"key rotate {old['public_id']}", code=1).stderr
    result = shell(f"key rotate {new['public_id']} --overlap 0")
    assert re.fullmatch(r"psk_[0-9a-z]{18}_[0-9a-z]{38}\n", result.stdout)
    assert f"{new['public_id']} has ended" in result.stderr
    assert shell.json(f"key show {new['public_id']}")["status"] == "expired"
    assert "--overlap" in shell(f"key rotate {new['public_id']} --overlap soon", code=2).stderr
    last = result.stdout.split("_")[1]
    shell(f"key revoke {last}")
    assert "is revoked" in shell(f"key rotate {last}", code=1).stderr


def test_a_keys_budget_belongs_to_its_lineage(shell: Shell):
    old = shell.json("key create")
    new = shell.json(f"key rotate {old['public_id']}")
    shell(f"key budget {new['public_id']} --amount 3 --period month")
    assert [each["cap"] for each in shell.json(f"key show {old['public_id']}")["budgets"]] == ["3.00"]
    assert shell.json(f"key budget {old['public_id']} --period month --remove")["budgets"] == []
    assert "no budget" in shell(f"key budget {new['public_id']} --period month --remove", code=1).stderr


# -- the audit log


def test_a_tag_has_budgets_and_a_key_fixed_tags(shell: Shell):
    shell("account create studio")
    made = shell.json("account budget studio --tag team-a --amount 5 --period day")
    [budget] = made["tag_budgets"]
    assert (budget["of"], budget["tag"], budget["cap"], made["budgets"]) == ("tag", "team-a", "5.00", [])
    shown = shell("account show studio").stdout
    assert re.search(r"budget of tag team-a, day +0.00 spent and 0.00 held of 5.00 USD", shown)
    assert shell.json("account budget studio --tag team-a --period day --remove")["tag_budgets"] == []
    assert "tag `team-a`" in shell("account budget studio --tag team-a --period day --remove", code=1).stderr
    assert "--tag: should be 1 to 64" in shell("account budget studio --tag a,b --amount 1", code=2).stderr
    key = shell.json("key create --account studio --tag team-a --tag prod --tag team-a")
    assert key["tags"] == ["team-a", "prod"]
    turned = shell.json(f"key rotate {key['public_id']}")
    assert turned["tags"] == ["team-a", "prod"]
    assert shell.json(f"key change {turned['public_id']} --tag web")["tags"] == ["web"]
    assert shell.json(f"key change {turned['public_id']} --tag none")["tags"] == []


def test_the_audit_log_tells_every_change_and_no_secret(shell: Shell):
    made = shell.json("key create --account studio --budget 1")
    rotated = shell.json(f"key rotate {made['public_id']}")
    shell(f"key revoke {made['public_id']}")
    shell(f"key revoke {made['public_id']}")
    shell("account limits studio --concurrent-jobs 2")
    shell("account limits studio --concurrent-jobs 2")
    whole = shell.json("audit")
    assert [line["action"] for line in whole] == [
        "account.limited",
        "key.revoked",
        "key.rotated",
        "budget.set",
        "key.created",
        "account.created",
    ]
    assert {line["actor"] for line in whole} == {"cli"}
    assert shell.json("audit --limit 2") == whole[:2]
    assert shell.json("audit --action key.rotated") == whole[2:3]
    assert shell.json("audit --account studio") == whole
    shown = shell("audit").output + str(whole)
    assert not any(key["key"].rpartition("_")[2] in shown for key in (made, rotated))
    assert re.search(rf"cli +key.rotated +{made['public_id']} +.*{rotated['public_id']}", shell("audit").stdout)


# -- beside a server


async def test_a_running_server_follows_by_itself(server):
    shell = Shell(server.gateway.settings.data)
    made = await asyncio.to_thread(shell.json, "key create --account studio")
    headers = {"authorization": f"Bearer {made['key']}"}

    async def answered(status: int) -> None:
        async with asyncio.timeout(300):
            while (await server.client.get("/api/v1/jobs", headers=headers)).status_code != status:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    await answered(200)
    await asyncio.to_thread(shell, "account close studio")
    await answered(401)
    await asyncio.to_thread(shell, "account reopen studio")
    await answered(200)
    new = await asyncio.to_thread(shell.json, f"key rotate {made['public_id']} --overlap 0")
    await answered(401)
    headers["authorization"] = f"Bearer {new['key']}"
    await answered(200)
