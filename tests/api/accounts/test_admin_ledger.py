"""The ledger over the admin API: looked at, paged, and mended by refund, release and settle, each once and told."""

from typing import Any

import httpx
from admin_steps import ADMIN_KEY, WITH_ADMIN, administer, call, changes, make_account, make_key
from conftest import MODEL, Server, client_of
from steps import order, refused

from penstock.store.queries.billing.ledger_audit import check

PRICED = f'{WITH_ADMIN}[[models]]\nid = "{MODEL}"\nvendor = "sim"\nprice = {{per_job = "0.30"}}\n'
UNKNOWN = {"submission": "reply_lost", "findable": False}
WHY = {"reason": "the vendor's bill says so"}


async def sign_up(server: Server, admin: httpx.AsyncClient, cap: str = "1.00") -> httpx.AsyncClient:
    """A caller of the account `mill`, which has a budget."""
    await make_account(admin, budgets=[{"period": "total", "cap": cap}])
    key = (await make_key(admin))["key"]
    return await server.clients.enter_async_context(client_of(server.url, key))


async def run(caller: httpx.AsyncClient, **script: Any) -> str:
    """A job that has ended."""
    job = await order(caller, script)
    done = (await caller.get(f"/api/v1/jobs/{job['id']}", params={"wait": 30})).json()
    assert done["done"], done
    return job["id"]


async def entries(admin: httpx.AsyncClient, **query: Any) -> list[tuple[str, str]]:
    found = (await admin.get("/admin/v1/ledger", params=query)).json()["data"]
    return [(entry["kind"], entry["amount"]) for entry in found]


async def standing(admin: httpx.AsyncClient) -> tuple[str, str]:
    [budget] = (await call(admin, "GET", "/accounts/mill"))["budgets"]
    return budget["spent"], budget["held"]


async def test_what_was_charged_is_given_back_once(start):
    server = await start(PRICED)
    admin = await administer(server)
    caller = await sign_up(server, admin)
    job_id = await run(caller)
    assert await standing(admin) == ("0.30", "0.00")
    shown = (await admin.get("/admin/v1/ledger", params={"subject": job_id})).json()
    assert {entry["kind"]: entry["amount"] for entry in shown["data"]} == {"hold": "0.30", "settle": "0.30"}
    assert {entry["subject"] for entry in shown["data"]} == {job_id}
    for _ in range(2):
        mended = await call(admin, "POST", f"/ledger/{job_id}/refund", {"reason": "the model was hollow"})
        assert {entry["kind"] for entry in mended["data"]} == {"hold", "settle", "refund"}
    assert await standing(admin) == ("0.00", "0.00")
    [change] = await changes(admin, action="ledger.refunded")
    assert (change["actor"], change["subject"]) == ("admin", job_id)
    assert change["detail"] == {"amount": "0.30", "reason": "the model was hollow"}
    assert await server.gateway.database.read(check) == []


async def test_a_job_of_unknown_outcome_is_settled_or_released(start):
    server = await start(PRICED)
    admin = await administer(server)
    caller = await sign_up(server, admin)
    made, lost = [await run(caller, **UNKNOWN) for _ in range(2)]
    assert await standing(admin) == ("0.00", "0.60")
    await call(admin, "POST", f"/ledger/{made}/settle", WHY)
    await call(admin, "POST", f"/ledger/{lost}/release", WHY)
    assert await standing(admin) == ("0.30", "0.00")
    assert sorted(await entries(admin, subject=made)) == [("hold", "0.30"), ("settle", "0.30")]
    assert sorted(await entries(admin, subject=lost)) == [("hold", "0.30"), ("release", "0.30")]
    for path in (f"{made}/settle", f"{made}/release"):
        refused(await admin.post(f"/admin/v1/ledger/{path}", json=WHY), 409, "entry_conflict")
    assert {change["action"] for change in await changes(admin, account="mill")} >= {
        "ledger.settled",
        "ledger.released",
    }
    assert await server.gateway.database.read(check) == []


async def test_what_cannot_be_mended_is_refused_and_changes_nothing(start):
    server = await start(PRICED)
    admin = await administer(server)
    caller = await sign_up(server, admin)
    paid, failed = await run(caller), await run(caller, ending="failed")
    running = (await order(caller, {"ending": "never"}))["id"]
    before = await changes(admin), await standing(admin)
    for path in (f"{failed}/refund", f"{running}/refund", f"{paid}/settle", f"{paid}/release", f"{running}/settle"):
        refused(await admin.post(f"/admin/v1/ledger/{path}", json=WHY), 409, "entry_conflict")
    for verb in ("refund", "release", "settle"):
        refused(await admin.post(f"/admin/v1/ledger/job_nobody/{verb}", json=WHY), 404, "entry_not_found")
        refused(await admin.post(f"/admin/v1/ledger/{paid}/{verb}"), 400, "missing_required_parameter")
        refused(await admin.post(f"/admin/v1/ledger/{paid}/{verb}", json={"reason": " "}), 400, "invalid_params")
        refused(await caller.post(f"/admin/v1/ledger/{paid}/{verb}", json=WHY), 403, "scope_not_allowed")
    assert (await changes(admin), await standing(admin)) == before


async def test_an_accounts_ledger_is_paged_newest_first(start):
    server = await start(PRICED)
    admin = await administer(server)
    caller = await sign_up(server, admin, "9")
    jobs = [await run(caller, ending=ending) for ending in ("succeeded", "failed", "succeeded")]
    found, cursor = [], {}
    while True:
        page = (await admin.get("/admin/v1/ledger", params={"account": "mill", "limit": 2, **cursor})).json()
        found += page["data"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert [entry["subject"] for entry in found] == [job for job in reversed(jobs) for _ in range(2)]
    assert [entry["kind"] for entry in found] == ["settle", "hold", "release", "hold", "settle", "hold"]
    assert {entry["currency"] for entry in found} == {"USD"}
    assert await entries(admin, account="default") == []
    assert await entries(admin, subject="job_nobody") == []
    for query in (
        "",
        "account=mill&subject=x",
        "account=mill&limit=0",
        "account=mill&cursor=x",
        "account=mill&cursor=e30",
    ):
        refused(await admin.get(f"/admin/v1/ledger?{query}"), 400, "invalid_params")
    refused(await admin.get("/admin/v1/ledger?account=nobody"), 404, "account_not_found")
    async with client_of(server.url, ADMIN_KEY) as again:
        assert (await again.get("/admin/v1/ledger", params={"account": "mill"})).json()["data"] == found
