"""Keys over the admin API: issued, listed, changed, rotated and revoked; what they may do follows at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from admin_steps import JOBS, WITH_ADMIN, administer, call, changes, make_account, make_key, until_answered, use
from conftest import MODEL, VIDEO
from steps import body_of, refused

NO_LIMITS = dict.fromkeys(("requests_per_minute", "tokens_per_minute", "concurrent_jobs", "concurrent_streams"))


def later(**distance: float) -> str:
    return (datetime.now(UTC) + timedelta(**distance)).isoformat()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def without_text(issued: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in issued.items() if name != "key"}


# -- issuing


async def test_a_key_is_issued_and_its_text_shown_once(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    account = await make_account(admin)
    issued = await make_key(admin, account["id"])
    assert issued["key"].startswith(f"psk_{issued['public_id']}_")
    assert without_text(issued) == {
        "object": "key",
        "public_id": issued["public_id"],
        "account": "mill",
        "account_id": account["id"],
        "name": "",
        "models": [],
        "endpoints": [],
        "created_at": issued["created_at"],
        "expires_at": None,
        "revoked_at": None,
        "status": "active",
        "lineage": issued["public_id"],
        "replaced_by": None,
        "limits": NO_LIMITS,
        "budgets": [],
        "reuse": None,
        "tags": [],
        "content_log": None,
        "logs_content": False,
        "person_id": None,
    }
    assert await call(admin, "GET", f"/keys/{issued['public_id']}") == without_text(issued)
    assert await use(server, issued["key"]) == (200, None)
    assert (await call(admin, "GET", "/accounts/mill"))["keys"] == 1
    [change, _] = await changes(admin, account="mill")
    assert (change["action"], change["actor"], change["subject"]) == ("key.created", "admin", issued["public_id"])
    assert change["account_id"] == account["id"]


async def test_a_key_is_what_was_asked(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    issued = await make_key(
        admin,
        name=" website ",
        models=[VIDEO],
        endpoints=["generate", "chat"],
        expires_at=later(days=30),
        limits={"concurrent_jobs": 2, "tokens_per_minute": 1000},
        budgets=[{"period": "day", "cap": "0.5"}, {"period": "total", "cap": "9"}],
    )
    assert (issued["name"], issued["models"], issued["endpoints"]) == ("website", [VIDEO], ["chat", "generate"])
    assert timedelta(days=29) < moment(issued["expires_at"]) - datetime.now(UTC) <= timedelta(days=30)
    assert issued["limits"] == NO_LIMITS | {"concurrent_jobs": 2, "tokens_per_minute": 1000}
    assert [(budget["of"], budget["period"], budget["cap"]) for budget in issued["budgets"]] == [
        ("key", "day", "0.50"),
        ("key", "total", "9.00"),
    ]
    soon = await make_key(admin, expires_in=0.3)
    await until_answered(server, soon["key"], 401, "expired_api_key")
    headers = {"authorization": f"Bearer {issued['key']}"}
    denied = await server.client.post("/model/v1/generation", json=body_of(model=MODEL), headers=headers)
    refused(denied, 403, "model_not_allowed")


WRONG = [
    ({}, "account", "missing_required_parameter"),
    ({"account": ""}, "account", "invalid_params"),
    ({"account": "default", "name": "\x1b[2J"}, "name", "invalid_params"),
    ({"account": "default", "name": "x" * 201}, "name", "invalid_params"),
    ({"account": "default", "models": ["vendorb_video_32"]}, "models.0", "invalid_params"),
    ({"account": "default", "models": VIDEO}, "models", "invalid_params"),
    ({"account": "default", "models": [5]}, "models.0", "invalid_params"),
    ({"account": "default", "endpoints": ["write"]}, "endpoints.0", "invalid_params"),
    ({"account": "default", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_at": "9999-12-31T23:59:59-23:59"}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_at": "0001-01-01T00:00:00+14:00"}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_at": "2099-02-30T00:00:00Z"}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_at": "2099-01-01T00:00:00"}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_at": 4_000_000_000}, "expires_at", "invalid_params"),
    ({"account": "default", "expires_in": 0}, "expires_in", "invalid_params"),
    ({"account": "default", "expires_in": 1e300}, "expires_in", "invalid_params"),
    ({"account": "default", "expires_in": "30d"}, "expires_in", "invalid_params"),
    ({"account": "default", "expires_in": 5, "expires_at": "2099-01-01T00:00:00Z"}, "expires_in", "invalid_params"),
    ({"account": "default", "scopes": ["chat"]}, "scopes", "unknown_param"),
    ({"account": "default", "budgets": [{"period": "day", "cpa": 1}]}, "budgets.0.cap", "invalid_params"),
]


async def test_what_is_wrong_with_a_key_is_told_by_its_place(start):
    admin = await administer(await start(WITH_ADMIN))
    before = len((await call(admin, "GET", "/keys"))["data"])
    for body, place, code in WRONG:
        error = refused(await admin.post("/admin/v1/keys", json=body), 400, code)
        assert place in [detail["loc"] for detail in error["details"]], body
    error = refused(await admin.post("/admin/v1/keys", json={"account": "mlil"}), 404, "account_not_found")
    assert error["param"] == "account"
    refused(await admin.post("/admin/v1/keys", json={"account": "acct_nobody"}), 404, "account_not_found")
    assert len((await call(admin, "GET", "/keys"))["data"]) == before


# -- listing


async def test_keys_are_listed_newest_first_page_by_page_and_by_account(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    ids = {name: (await make_account(admin, name))["id"] for name in ("mill", "weir")}
    made = [await make_key(admin, name, name=str(number)) for number in range(3) for name in ids]

    async def walk(**query: Any) -> list[dict[str, Any]]:
        found, cursor = [], {}
        while True:
            page = (await admin.get("/admin/v1/keys", params={"limit": 2, **query, **cursor})).json()
            found += page["data"]
            if not page["has_more"]:
                return found
            cursor = {"cursor": page["next_cursor"]}

    every = await walk()
    assert [key["public_id"] for key in every[:-1]] == [key["public_id"] for key in reversed(made)]
    assert every[-1]["account"] == "default"
    for account in ("weir", ids["weir"]):
        assert [key["name"] for key in await walk(account=account)] == ["2", "1", "0"]
    for query in ("limit=0", "cursor=nobody", "cursor=%20", f"account={'x' * 201}"):
        refused(await admin.get(f"/admin/v1/keys?{query}"), 400, "invalid_params")
    for account in ("nobody", ""):
        refused(await admin.get(f"/admin/v1/keys?account={account}"), 404, "account_not_found")


# -- changing


async def test_a_change_of_a_key_counts_within_a_second(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    issued = await make_key(admin, name="one", limits={"concurrent_jobs": 2})
    path = f"/keys/{issued['public_id']}"
    assert await call(admin, "PATCH", path, {}) == without_text(issued)
    narrowed = await call(admin, "PATCH", path, {"endpoints": ["chat"], "models": [MODEL, VIDEO], "name": "two"})
    assert narrowed == without_text(issued) | {"endpoints": ["chat"], "models": [MODEL, VIDEO], "name": "two"}
    await until_answered(server, issued["key"], 403, "scope_not_allowed")
    limits = {"concurrent_jobs": None, "requests_per_minute": 7}
    widened = await call(admin, "PATCH", path, {"endpoints": None, "models": [], "name": None, "limits": limits})
    assert widened == without_text(issued) | {"name": "", "limits": NO_LIMITS | {"requests_per_minute": 7}}
    await until_answered(server, issued["key"], 200)
    ending = await call(admin, "PATCH", path, {"expires_in": 0.2})
    assert ending["expires_at"] is not None
    await until_answered(server, issued["key"], 401, "expired_api_key")
    assert (await call(admin, "GET", path))["status"] == "expired"
    again = await call(admin, "PATCH", path, {"expires_at": None})
    assert (again["expires_at"], again["status"]) == (None, "active")
    await until_answered(server, issued["key"], 200)
    error = refused(
        await admin.patch(f"/admin/v1{path}", json={"models": ["nothing"], "nmae": 1}), 400, "invalid_params"
    )
    assert {detail["loc"] for detail in error["details"]} == {"models.0", "nmae"}
    refused(await admin.patch("/admin/v1/keys/nobody", json={}), 404, "key_not_found")
    actions = [change["action"] for change in await changes(admin, account="mill")]
    assert actions == ["key.changed"] * 4 + ["key.created", "account.created"]
    [_, _, _, first, *_] = await changes(admin, action="key.changed")
    assert first["detail"] == {
        "name": {"from": "one", "to": "two"},
        "models": {"from": [], "to": [MODEL, VIDEO]},
        "endpoints": {"from": [], "to": ["chat"]},
    }


async def test_a_revoked_key_is_refused_within_a_second_and_stays_listed(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    one, two = await make_key(admin), await make_key(admin)
    revoked = await call(admin, "POST", f"/keys/{one['public_id']}/revoke")
    assert (revoked["status"], revoked["revoked_at"] >= one["created_at"]) == ("revoked", True)
    assert await call(admin, "POST", f"/keys/{one['public_id']}/revoke") == revoked
    await call(admin, "DELETE", f"/keys/{two['public_id']}", status=204)
    await call(admin, "DELETE", f"/keys/{two['public_id']}", status=204)
    for key in (one, two):
        await until_answered(server, key["key"], 401, "revoked_api_key")
    assert (await call(admin, "GET", f"/keys/{two['public_id']}"))["status"] == "revoked"
    assert (await call(admin, "GET", "/accounts/mill"))["keys"] == 0
    refused(await admin.delete("/admin/v1/keys/nobody"), 404, "key_not_found")
    refused(await admin.post("/admin/v1/keys/nobody/revoke"), 404, "key_not_found")
    assert [change["action"] for change in await changes(admin, account="mill")][:2] == ["key.revoked"] * 2


# -- rotating


async def test_the_old_key_works_beside_the_new_one_for_the_overlap(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    budgets = [{"period": "month", "cap": "3"}]
    old = await make_key(admin, name="site", endpoints=["read"], limits={"concurrent_jobs": 3}, budgets=budgets)
    new = await call(admin, "POST", f"/keys/{old['public_id']}/rotate", {"overlap_seconds": 900}, 201)
    same = ("account", "account_id", "name", "models", "endpoints", "expires_at", "limits", "budgets", "lineage")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert new["public_id"] != old["public_id"]
    assert (await use(server, old["key"]), await use(server, new["key"])) == ((200, None), (200, None))
    replaced = await call(admin, "GET", f"/keys/{old['public_id']}")
    assert (replaced["replaced_by"], replaced["status"]) == (new["public_id"], "active")
    ends = moment(replaced["expires_at"]) - moment(new["created_at"])
    assert abs(ends - timedelta(seconds=900)) < timedelta(milliseconds=5)
    last = await call(admin, "POST", f"/keys/{new['public_id']}/rotate", {"overlap_seconds": 1}, 201)
    replaced = await call(admin, "GET", f"/keys/{new['public_id']}")
    await asyncio.sleep(max(0.0, (moment(replaced["expires_at"]) - datetime.now(UTC)).total_seconds()))
    assert await use(server, new["key"]) == (401, "expired_api_key")
    assert await use(server, last["key"]) == (200, None)


async def test_keys_of_one_lineage_share_limits_and_budgets(start):
    admin = await administer(await start(WITH_ADMIN))
    await make_account(admin)
    first = await make_key(admin)
    second = await call(admin, "POST", f"/keys/{first['public_id']}/rotate", status=201)
    third = await call(admin, "POST", f"/keys/{second['public_id']}/rotate", status=201)
    assert {key["lineage"] for key in (first, second, third)} == {first["public_id"]}
    budget = await call(admin, "PUT", f"/keys/{third['public_id']}/budgets/day", {"cap": "4"})
    await call(admin, "PATCH", f"/keys/{second['public_id']}", {"limits": {"concurrent_jobs": 5}, "name": "middle"})
    shown = [await call(admin, "GET", f"/keys/{key['public_id']}") for key in (first, second, third)]
    assert [key["budgets"] for key in shown] == [[budget]] * 3
    assert [key["limits"]["concurrent_jobs"] for key in shown] == [5, 5, 5]
    assert [key["name"] for key in shown] == ["", "middle", ""]
    await call(admin, "DELETE", f"/keys/{first['public_id']}/budgets/day", status=204)
    assert (await call(admin, "GET", f"/keys/{third['public_id']}"))["budgets"] == []
    refused(await admin.delete(f"/admin/v1/keys/{third['public_id']}/budgets/day"), 404, "budget_not_found")
    refused(await admin.delete("/admin/v1/keys/nobody/budgets/day"), 404, "key_not_found")
    refused(await admin.put("/admin/v1/keys/nobody/budgets/day", json={"cap": "1"}), 404, "key_not_found")


async def test_without_overlap_the_old_key_ends_at_once(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    old = await make_key(admin)
    new = await call(admin, "POST", f"/keys/{old['public_id']}/rotate", {"overlap_seconds": 0}, 201)
    assert (await call(admin, "GET", f"/keys/{old['public_id']}"))["status"] == "expired"
    assert await use(server, old["key"]) == (401, "expired_api_key")
    assert await use(server, new["key"]) == (200, None)
    assert (await call(admin, "GET", "/accounts/mill"))["keys"] == 1


async def test_an_overlap_never_makes_a_key_live_longer(start):
    admin = await administer(await start(WITH_ADMIN))
    await make_account(admin)
    old = await make_key(admin, expires_in=600)
    new = await call(admin, "POST", f"/keys/{old['public_id']}/rotate", status=201)
    assert (await call(admin, "GET", f"/keys/{old['public_id']}"))["expires_at"] == old["expires_at"]
    assert new["expires_at"] == old["expires_at"]


async def test_a_key_that_does_not_work_is_not_rotated(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    revoked, expired, replaced = [await make_key(admin) for _ in range(3)]
    await call(admin, "POST", f"/keys/{revoked['public_id']}/revoke")
    await call(admin, "PATCH", f"/keys/{expired['public_id']}", {"expires_in": 0.01})
    new = await call(admin, "POST", f"/keys/{replaced['public_id']}/rotate", status=201)
    await until_answered(server, expired["key"], 401, "expired_api_key")

    async def rotate(key: dict[str, Any]) -> httpx.Response:
        return await admin.post(f"/admin/v1/keys/{key['public_id']}/rotate")

    error = refused(await rotate(replaced), 409, "key_not_rotatable")
    assert f"Rotate {new['public_id']}." in error["suggestion"]
    for key, word in ((revoked, "revoked"), (expired, "expired")):
        error = refused(await rotate(key), 409, "key_not_rotatable")
        assert word in error["message"]
        assert "new key" in error["suggestion"]
    refused(await admin.post("/admin/v1/keys/nobody/rotate"), 404, "key_not_found")
    for body in ({"overlap_seconds": -1}, {"overlap_seconds": "1h"}, {"overlap": 1}, {"overlap_seconds": 1e12}):
        assert (await admin.post(f"/admin/v1/keys/{new['public_id']}/rotate", json=body)).status_code == 400
    assert len((await call(admin, "GET", "/keys?account=mill"))["data"]) == 4


# -- the audit log


async def test_the_audit_log_is_filtered_and_paged(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    ids = {name: (await make_account(admin, name))["id"] for name in ("mill", "weir")}
    for name in ("mill", "weir", "mill"):
        await make_key(admin, name)
    whole = await changes(admin)
    assert [change["action"] for change in whole] == ["key.created"] * 3 + ["account.created"] * 2
    assert [change["id"] for change in whole] == sorted((change["id"] for change in whole), key=int, reverse=True)
    assert {change["actor"] for change in whole} == {"admin"}
    assert [change["account_id"] for change in await changes(admin, account="mill")] == [ids["mill"]] * 3
    assert len(await changes(admin, account=ids["weir"], action="key.created")) == 1
    paged, cursor = [], {}
    while True:
        page = (await admin.get("/admin/v1/audit", params={"limit": 2, **cursor})).json()
        paged += page["data"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert paged == whole
    for query in ("action=nothing", "cursor=x", "limit=1000"):
        refused(await admin.get(f"/admin/v1/audit?{query}"), 400, "invalid_params")
    refused(await admin.get("/admin/v1/audit?account=nobody"), 404, "account_not_found")
    refused(await server.client.get(JOBS, headers={"authorization": "Bearer x"}), 401, "invalid_api_key")
    assert await changes(admin) == whole
