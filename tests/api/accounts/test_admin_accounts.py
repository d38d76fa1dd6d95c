"""Accounts and their budgets over the admin API: made, found, changed, closed, and every change in the audit log."""

from admin_steps import WITH_ADMIN, administer, call, changes, make_account, make_key, until_answered, use
from conftest import client_of
from steps import look, order, refused

NO_LIMITS = dict.fromkeys(("requests_per_minute", "tokens_per_minute", "concurrent_jobs", "concurrent_streams"))


async def test_an_account_is_made_without_a_key_and_found_by_id_and_name(start):
    admin = await administer(await start(WITH_ADMIN))
    made = await make_account(admin, "  the old mill ")
    assert made == {
        "object": "account",
        "id": made["id"],
        "name": "the old mill",
        "created_at": made["created_at"],
        "closed_at": None,
        "limits": NO_LIMITS,
        "budgets": [],
        "tag_budgets": [],
        "keys": 0,
        "storage": {"bytes": 0, "quota": None},
        "content_log": False,
    }
    assert made["id"].startswith("acct_")
    assert await call(admin, "GET", f"/accounts/{made['id']}") == made
    assert await call(admin, "GET", "/accounts/the old mill") == made
    refused(await admin.post("/admin/v1/accounts", json={"name": "the old mill"}), 409, "account_exists")
    for path in ("acct_nobody", "nobody", made["id"][:-1]):
        refused(await admin.get(f"/admin/v1/accounts/{path}"), 404, "account_not_found")


async def test_accounts_are_found_by_a_part_of_their_names(start):
    admin = await administer(await start(WITH_ADMIN))
    for name in ("the old mill", "Windmill", "100% wool", "studio"):
        await make_account(admin, name)

    async def found(part: str, **query: str) -> list[str]:
        page = await admin.get("/admin/v1/accounts", params={"name": part, **query})
        return [account["name"] for account in page.json()["data"]]

    assert await found("MILL") == ["Windmill", "the old mill"]
    assert await found("mill", limit="1") == ["Windmill"]
    assert await found("%") == ["100% wool"]
    assert await found("nobody") == []


async def test_limits_and_budgets_are_set_from_the_first(start):
    admin = await administer(await start(WITH_ADMIN))
    limits = {"requests_per_minute": 600, "concurrent_jobs": 4.0}
    budgets = [{"period": "month", "cap": "50", "time_zone": "Europe/Berlin"}, {"period": "total", "cap": 0.25}]
    made = await make_account(admin, limits=limits, budgets=budgets)
    assert made["limits"] == NO_LIMITS | {"requests_per_minute": 600, "concurrent_jobs": 4}
    month, total = made["budgets"]
    assert month == {
        "of": "account",
        "period": "month",
        "time_zone": "Europe/Berlin",
        "cap": "50.00",
        "spent": "0.00",
        "held": "0.00",
        "left": "50.00",
        "resets_at": month["resets_at"],
    }
    assert month["resets_at"] > made["created_at"]
    assert (total["period"], total["cap"], total["time_zone"], total["resets_at"]) == ("total", "0.25", "UTC", None)


WRONG = [
    ({}, "name", "missing_required_parameter"),
    ({"name": None}, "name", "missing_required_parameter"),
    ({"name": ""}, "name", "invalid_params"),
    ({"name": " \t "}, "name", "invalid_params"),
    ({"name": "x" * 201}, "name", "invalid_params"),
    ({"name": "a\nb"}, "name", "invalid_params"),
    ({"name": "acct_mine"}, "name", "invalid_params"),
    ({"name": 5}, "name", "invalid_params"),
    ({"name": "a", "nmae": "b"}, "nmae", "unknown_param"),
    ({"name": "a", "limits": {"requests_per_minute": 0}}, "limits.requests_per_minute", "invalid_params"),
    ({"name": "a", "limits": {"requests_per_minute": True}}, "limits.requests_per_minute", "invalid_params"),
    ({"name": "a", "limits": {"requests_per_minute": 10**30}}, "limits.requests_per_minute", "invalid_params"),
    ({"name": "a", "limits": {"requests_per_hour": 1}}, "limits.requests_per_hour", "unknown_param"),
    ({"name": "a", "limits": []}, "limits", "invalid_params"),
    ({"name": "a", "budgets": {}}, "budgets", "invalid_params"),
    ({"name": "a", "budgets": [{"cap": "1"}]}, "budgets.0.period", "missing_required_parameter"),
    ({"name": "a", "budgets": [{"period": "day"}]}, "budgets.0.cap", "missing_required_parameter"),
    ({"name": "a", "budgets": [{"period": "week", "cap": "1"}]}, "budgets.0.period", "invalid_params"),
    ({"name": "a", "budgets": [{"period": "day", "cap": "-1"}]}, "budgets.0.cap", "invalid_params"),
    ({"name": "a", "budgets": [{"period": "day", "cap": "1e3"}]}, "budgets.0.cap", "invalid_params"),
    ({"name": "a", "budgets": [{"period": "day", "cap": "0.0000000001"}]}, "budgets.0.cap", "invalid_params"),
    ({"name": "a", "budgets": [{"period": "day", "cap": "1000000000.01"}]}, "budgets.0.cap", "invalid_params"),
    ({"name": "a", "budgets": [{"period": "day", "cap": "10000000000"}]}, "budgets.0.cap", "invalid_params"),
    (
        {"name": "a", "budgets": [{"period": "day", "cap": "1"}, {"period": "day", "cap": "2"}]},
        "budgets.1.period",
        "invalid_params",
    ),
]


async def test_what_is_wrong_with_an_account_is_told_by_its_place(start):
    admin = await administer(await start(WITH_ADMIN))
    for body, place, code in WRONG:
        error = refused(await admin.post("/admin/v1/accounts", json=body), 400, code)
        assert error["param"] == place, body
        assert [detail["loc"] for detail in error["details"]] == [place]
    whole = await call(admin, "GET", "/accounts")
    assert [account["name"] for account in whole["data"]] == ["default"]


async def test_every_problem_is_told_at_once(start):
    admin = await administer(await start(WITH_ADMIN))
    body = {"limits": {"concurrent_jobs": -1}, "budgets": [{"cap": "x", "time_zone": "Europe/Berlni"}], "budget": 5}
    error = refused(await admin.post("/admin/v1/accounts", json=body), 400, "invalid_params")
    told = {detail["loc"]: detail for detail in error["details"]}
    assert set(told) == {
        "name",
        "limits.concurrent_jobs",
        "budgets.0.cap",
        "budgets.0.time_zone",
        "budgets.0.period",
        "budget",
    }
    assert "Europe/Berlin" in told["budgets.0.time_zone"]["message"]
    assert "Did you mean `budgets`?" in told["budget"]["message"]


async def test_a_time_zone_is_an_iana_name(start):
    admin = await administer(await start(WITH_ADMIN))
    path = "/admin/v1/accounts/default/budgets/day"
    for zone in ("localtime", "../UTC", "posix/UTC", "America", "utc", "", "Europe/Berlin\0", "x" * 999, 5):
        answer = await admin.put(path, json={"cap": "1", "time_zone": zone})
        assert refused(answer, 400, "invalid_params")["param"] == "time_zone"
    for zone in ("UTC", "Asia/Kolkata", "America/Argentina/Buenos_Aires", "Etc/GMT-14"):
        assert (await admin.put(path, json={"cap": "1", "time_zone": zone})).json()["time_zone"] == zone


async def test_bodies_that_are_none(start):
    admin = await administer(await start(WITH_ADMIN))
    for content, code in ((b"[]", "invalid_json"), (b"{", "invalid_json"), (b'"a"', "invalid_json")):
        refused(await admin.post("/admin/v1/accounts", content=content), 400, code)
    headers = {"content-type": "text/plain"}
    refused(await admin.post("/admin/v1/accounts", content=b"{}", headers=headers), 415, "unsupported_media_type")
    refused(await admin.post("/admin/v1/accounts"), 400, "missing_required_parameter")


async def test_a_change_says_only_what_changes(start):
    admin = await administer(await start(WITH_ADMIN))
    made = await make_account(admin, limits={"requests_per_minute": 5, "concurrent_jobs": 2})
    path = f"/accounts/{made['id']}"
    assert await call(admin, "PATCH", path, {}) == made
    assert await call(admin, "PATCH", path) == made
    changed = await call(admin, "PATCH", path, {"limits": {"requests_per_minute": None, "tokens_per_minute": 9}})
    assert changed == made | {"limits": NO_LIMITS | {"tokens_per_minute": 9, "concurrent_jobs": 2}}
    changed = await call(admin, "PATCH", path, {"name": "mill & sons", "limits": None})
    assert changed == made | {"name": "mill & sons", "limits": NO_LIMITS}
    assert await call(admin, "GET", "/accounts/mill & sons") == changed
    await make_account(admin, "other")
    refused(await admin.patch(f"/admin/v1{path}", json={"name": "other"}), 409, "account_exists")
    assert (await call(admin, "PATCH", path, {"name": "mill & sons"}))["name"] == "mill & sons"
    refused(await admin.patch("/admin/v1/accounts/nobody", json={}), 404, "account_not_found")
    actions = [(change["action"], change["detail"]) for change in await changes(admin, account=made["id"])]
    assert actions == [
        (
            "account.limited",
            {"limits": {"tokens_per_minute": {"from": 9, "to": None}, "concurrent_jobs": {"from": 2, "to": None}}},
        ),
        ("account.renamed", {"name": {"from": "mill", "to": "mill & sons"}}),
        (
            "account.limited",
            {"limits": {"requests_per_minute": {"from": 5, "to": None}, "tokens_per_minute": {"from": None, "to": 9}}},
        ),
        ("account.created", {"name": "mill", "limits": {"requests_per_minute": 5, "concurrent_jobs": 2}}),
    ]


async def test_a_closed_accounts_keys_are_refused_within_a_second_and_its_jobs_stay(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    made = await make_account(admin)
    key = (await make_key(admin))["key"]
    caller = await server.clients.enter_async_context(client_of(server.url, key))
    job = await order(caller, {"ending": "never"})
    closed = await call(admin, "PATCH", f"/accounts/{made['id']}", {"closed": True})
    assert closed["closed_at"] >= made["created_at"]
    assert await call(admin, "PATCH", "/accounts/mill", {"closed": True}) == closed
    await until_answered(server, key, 401, "revoked_api_key")
    [listed] = (await call(admin, "GET", "/keys?account=mill"))["data"]
    assert listed["status"] == "closed"
    refused(await admin.post("/admin/v1/keys", json={"account": "mill"}), 409, "account_closed")
    rotated = await admin.post(f"/admin/v1/keys/{listed['public_id']}/rotate")
    refused(rotated, 409, "account_closed")
    assert await use(server, await server.new_key()) == (200, None)
    reopened = await call(admin, "PATCH", "/accounts/mill", {"closed": False})
    assert (reopened["closed_at"], reopened["keys"]) == (None, 1)
    await until_answered(server, key, 200)
    assert (await look(caller, job["id"]))["status"] in ("queued", "running")
    actions = [change["action"] for change in await changes(admin, account="mill")]
    assert actions == ["account.reopened", "account.closed", "key.created", "account.created"]


async def test_accounts_are_listed_newest_first_page_by_page(start):
    admin = await administer(await start(WITH_ADMIN))
    names = [f"account {number}" for number in range(5)]
    for name in names:
        await make_account(admin, name, budgets=[{"period": "day", "cap": "1"}])
    await make_key(admin, "account 2")
    seen, cursor = [], {}
    while True:
        page = (await admin.get("/admin/v1/accounts", params={"limit": 2, **cursor})).json()
        seen += page["data"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert [account["name"] for account in seen] == [*reversed(names), "default"]
    assert [account["keys"] for account in seen] == [0, 0, 1, 0, 0, 1]
    assert [len(account["budgets"]) for account in seen] == [1, 1, 1, 1, 1, 0]
    assert page["next_cursor"] is None
    for query in ("limit=0", "limit=101", "cursor=x", "cursor=%00", "limit=x"):
        refused(await admin.get(f"/admin/v1/accounts?{query}"), 400, "invalid_params")


# -- budgets


async def test_a_period_has_one_budget_which_is_replaced_and_removed(start):
    admin = await administer(await start(WITH_ADMIN))
    made = await make_account(admin)
    path = f"/accounts/{made['id']}/budgets"
    first = await call(admin, "PUT", f"{path}/month", {"cap": "10.00"})
    assert (first["cap"], first["of"], first["period"], first["time_zone"]) == ("10.00", "account", "month", "UTC")
    second = await call(admin, "PUT", "/accounts/mill/budgets/month", {"cap": "5.5", "time_zone": "Asia/Tokyo"})
    assert (second["cap"], second["time_zone"]) == ("5.50", "Asia/Tokyo")
    await call(admin, "PUT", f"{path}/day", {"cap": "1"})
    shown = (await call(admin, "GET", f"/accounts/{made['id']}"))["budgets"]
    assert [(budget["period"], budget["cap"]) for budget in shown] == [("day", "1.00"), ("month", "5.50")]
    await call(admin, "DELETE", f"{path}/month", status=204)
    refused(await admin.delete(f"/admin/v1{path}/month"), 404, "budget_not_found")
    refused(await admin.delete("/admin/v1/accounts/nobody/budgets/day"), 404, "account_not_found")
    refused(await admin.put("/admin/v1/accounts/nobody/budgets/day", json={"cap": "1"}), 404, "account_not_found")
    assert (
        refused(await admin.put(f"/admin/v1{path}/week", json={"cap": "1"}), 400, "invalid_params")["param"] == "period"
    )
    assert [budget["period"] for budget in (await call(admin, "GET", "/accounts/mill"))["budgets"]] == ["day"]
    actions = [(change["action"], change["detail"]) for change in await changes(admin, account="mill")][:-1]
    assert actions == [
        ("budget.removed", {"period": "month", "cap": "5.50", "time_zone": "Asia/Tokyo"}),
        ("budget.set", {"period": "day", "cap": "1.00", "time_zone": "UTC"}),
        (
            "budget.set",
            {
                "period": "month",
                "cap": "5.50",
                "time_zone": "Asia/Tokyo",
                "from": {"cap": "10.00", "time_zone": "UTC"},
            },
        ),
        ("budget.set", {"period": "month", "cap": "10.00", "time_zone": "UTC"}),
    ]
