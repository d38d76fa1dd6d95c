"""The simulated vendor's own side: takes orders, plays their scripts and stores both in a file of its own.

Its file outlives the gateway's process, so it can say how often each order really arrived.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

Answer = tuple[int, Mapping[str, str], bytes]
JSON = {"content-type": "application/json"}

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, reference TEXT NOT NULL, script TEXT NOT NULL, result TEXT NOT NULL,
    accepted_at REAL NOT NULL, canceled_at REAL, polls INTEGER NOT NULL DEFAULT 0, downloads INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS orders_by_reference ON orders (reference);
CREATE TABLE IF NOT EXISTS calls (subject TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_subject ON calls (subject);
"""


def subject_of(reference: str) -> str:
    """Return the part of a reference that all attempts at one job share."""
    return reference.rsplit("-", 1)[0]


class Simulator:
    """Answers like a vendor's HTTP API; called from threads."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        new_order_id: Callable[[], str] = lambda: f"sim-{uuid4()}",
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._new_order_id = new_order_id
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None

    def answer(self, method: str, path: str, body: bytes, be_sure: Callable[[], None] | None = None) -> Answer:
        """Route one request. `be_sure` raises if an order must not be placed any more."""
        parts = urlsplit(path)
        match (method, parts.path.strip("/").split("/")):
            case ("POST", ["orders"]):
                return self._submit(json.loads(body), be_sure)
            case ("GET", ["orders"]):
                return self._find(parse_qs(parts.query)["reference"][0])
            case ("GET", ["orders", order_id]):
                return self._poll(order_id)
            case ("PUT", ["orders", order_id]):
                return self._adopt(order_id, json.loads(body))
            case ("POST", ["orders", order_id, "cancel"]):
                return self._cancel(order_id)
            case ("GET", ["orders", order_id, "outputs", name]):
                return self._download(order_id, name)
            case _:
                return _reply(404, {"error": {"code": "not_found", "message": "no such path"}})

    place = answer

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def counts(self) -> dict[str, int]:
        """Return the numbers of jobs and accepted orders; `duplicates` must be 0."""
        with self._lock:
            rows = self._database.execute("SELECT reference FROM orders").fetchall()
        subjects = [subject_of(row[0]) for row in rows]
        return {"orders": len(subjects), "jobs": len(set(subjects)), "duplicates": len(subjects) - len(set(subjects))}

    @property
    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._opened = sqlite3.connect(
                self._folder / "simulator.db", isolation_level=None, check_same_thread=False, timeout=10
            )
            self._opened.execute("PRAGMA journal_mode = WAL")
            self._opened.execute("PRAGMA synchronous = OFF")  # a vendor's memory need not survive a power cut here
            self._opened.executescript(SCHEMA)
        return self._opened

    # -- the calls

    def _submit(self, order: dict[str, Any], be_sure: Callable[[], None] | None) -> Answer:
        script, reference = order["script"], order["reference"]
        with self._lock:
            subject = subject_of(reference)
            earlier = self._count("SELECT count(*) FROM calls WHERE subject = ?", subject)
            self._database.execute("INSERT INTO calls VALUES (?, ?)", (subject, self._clock()))
        trouble = script.get("submission", "accepted") if earlier < script.get("submission_times", 1) else "accepted"
        match trouble:
            case "unreachable":
                raise ConnectionRefusedError
            case "never_arrived":
                raise ConnectionResetError
            case "busy":
                error = {"code": "busy", "message": "too many orders"}
                return _reply(429, {"error": error}, {"retry-after": "0.2"})
            case "rejected":
                return _reply(400, {"error": {"code": "bad_order", "message": "the script says no"}})
            case "unauthorized":
                return _reply(401, {"error": {"code": "bad_credential", "message": "unknown credential"}})
            case _:
                order_id = self._accept(order, be_sure)
        if trouble == "reply_lost":
            raise ConnectionResetError
        return _reply(201, {"id": order_id})

    def _adopt(self, order_id: str, order: dict[str, Any]) -> Answer:
        """Continue an order that another machine's simulator accepted."""
        row = (order_id, order["reference"], json.dumps(order["script"]), json.dumps(order["result"]), order["at"])
        with self._lock:
            self._database.execute(
                "INSERT OR IGNORE INTO orders (id, reference, script, result, accepted_at) VALUES (?, ?, ?, ?, ?)", row
            )
        return _reply(200, {"id": order_id})

    def _accept(self, order: dict[str, Any], be_sure: Callable[[], None] | None) -> str:
        order_id = self._new_order_id()
        with self._lock:
            database = self._database
            database.execute("BEGIN IMMEDIATE")  # it may wait for another process's simulator
            try:
                if be_sure is not None:
                    be_sure()
                row = (order_id, order["reference"], json.dumps(order["script"]), json.dumps(order["result"]))
                database.execute(
                    "INSERT INTO orders (id, reference, script, result, accepted_at) VALUES (?, ?, ?, ?, ?)",
                    (*row, self._clock()),
                )
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise
        return order_id

    def _find(self, reference: str) -> Answer:
        with self._lock:
            rows = self._database.execute("SELECT id, script FROM orders WHERE reference = ?", (reference,)).fetchall()
        if any(not json.loads(row[1]).get("findable", True) for row in rows):
            return _reply(501, {"error": {"code": "no_lookup", "message": "orders cannot be looked up"}})
        return _reply(200, {"orders": [{"id": row[0]} for row in rows]})

    def _poll(self, order_id: str) -> Answer:
        order = self._order(order_id, "polls")
        if order is None:
            return _reply(404, {"id": order_id, "error": {"code": "not_found", "message": "no such order"}})
        script = order["script"]
        if order["polls"] < script.get("poll_errors", 0):
            return _trouble(order["polls"])
        return _reply(200, {"id": order_id, **_standing(order, self._clock()), "seed": order["result"].get("seed")})

    def _cancel(self, order_id: str) -> Answer:
        order = self._order(order_id)
        if order is None or not order["script"].get("cancelable", True):
            return _reply(409, {"id": order_id, "error": {"code": "not_cancelable", "message": "it goes on"}})
        with self._lock:
            query = "UPDATE orders SET canceled_at = coalesce(canceled_at, ?) WHERE id = ?"
            self._database.execute(query, (self._clock(), order_id))
        return _reply(200, {"id": order_id})

    def _download(self, order_id: str, name: str) -> Answer:
        order = self._order(order_id, "downloads")
        if order is None:
            return _reply(404, {"error": {"code": "not_found", "message": "no such order"}})
        if order["downloads"] < order["script"].get("download_errors", 0):
            return _trouble(order["downloads"] % 2)  # a download has no JSON that could be cut
        data = self._sample(name, order["result"], order["script"].get("ending"))
        is_picture = name == "preview" or order["result"]["kind"] == "image"
        kind = "image/png" if is_picture else "application/octet-stream"
        return 200, {"content-type": kind, "content-length": str(len(data))}, data

    # -- what it remembers

    def _count(self, query: str, *values: Any) -> int:
        return self._database.execute(query, values).fetchone()[0]

    def _order(self, order_id: str, counted: str | None = None) -> dict[str, Any] | None:
        """Return an order; `counted` names the counter to increment."""
        query = "SELECT script, result, accepted_at, canceled_at, polls, downloads FROM orders WHERE id = ?"
        with self._lock:
            row = self._database.execute(query, (order_id,)).fetchone()
            if row is not None and counted is not None and row[4 if counted == "polls" else 5] < 1000:
                self._database.execute(f"UPDATE orders SET {counted} = {counted} + 1 WHERE id = ?", (order_id,))  # noqa: S608  one of two names
        if row is None:
            return None
        names = ("id", "script", "result", "accepted_at", "canceled_at", "polls", "downloads")
        return dict(zip(names, (order_id, json.loads(row[0]), json.loads(row[1]), *row[2:]), strict=True))

    def _sample(self, name: str, result: dict[str, Any], ending: str | None) -> bytes:
        """Return the output's bytes."""
        from penstock.simulator import samples  # noqa: PLC0415  its libraries would slow every start

        seed = result.get("seed") or 0
        if name == "preview":
            return samples.make_preview(seed % 8)
        if ending == "wrong_size":
            result = result | {"width": 640, "height": 480, "face_limit": (result.get("face_limit") or 1000) * 4}
        if result["kind"] == "image":
            number = int(name.removeprefix("primary") or 0)
            data = samples.make_picture(seed + number, result["width"], result["height"], result["format"])
        elif result["kind"] == "model":
            data = samples.make_model(seed, result.get("face_limit"), result.get("texture", True))
        else:
            data = self._video(result["width"], result["height"], result["seconds"])
        return data[: len(data) * 2 // 3] if ending == "corrupt" else data

    def _video(self, width: int, height: int, seconds: int) -> bytes:
        """Return a test card; it is cached, as encoding a video is slow."""
        from penstock.simulator import samples  # noqa: PLC0415

        kept = self._folder / f"card-{width}x{height}-{seconds}s.mp4"
        with self._lock:
            if not kept.exists():
                fresh = kept.with_suffix(".new")
                fresh.write_bytes(samples.make_video(width, height, seconds, seed=0))
                fresh.rename(kept)
        return kept.read_bytes()


def _standing(order: dict[str, Any], now: float) -> dict[str, Any]:
    """Return the state of a script after the elapsed time."""
    script = order["script"]
    elapsed = now - order["accepted_at"]
    latency = script.get("latency", 0.5)
    ending = script.get("ending", "succeeded")
    state: dict[str, Any] = {"progress": None, "queue_position": None, "eta_seconds": None, "outputs": []}
    if order["canceled_at"] is not None:
        return state | {"status": "canceled", "error": {"code": "canceled", "message": "canceled"}}
    if elapsed < script.get("queued", 0):
        return state | {"status": "queued", "queue_position": 1, "eta_seconds": latency - elapsed}
    if elapsed < latency or ending == "never":
        details = {"progress": min(0.99, elapsed / max(latency, 0.001)), "eta_seconds": max(0.0, latency - elapsed)}
        return state | {"status": "running"} | (details if script.get("progress", True) else {})
    if ending in ("failed", "filtered"):
        reason = "the script says so" if ending == "failed" else "the script says the result is not to be shown"
        return state | {"status": ending, "error": {"code": ending, "message": reason}}
    return state | {"status": "succeeded", "outputs": [] if ending == "no_output" else _outputs(order)}


def _outputs(order: dict[str, Any]) -> list[dict[str, str]]:
    kind, place = order["result"]["kind"], f"/orders/{order['id']}/outputs"
    names = ["primary", *(f"primary{number}" for number in range(1, order["result"].get("count", 1)))]
    outputs = [{"kind": kind, "role": "primary", "path": f"{place}/{name}"} for name in names]
    if kind == "model":
        outputs.append({"kind": "image", "role": "preview", "path": f"{place}/preview"})
    return outputs


def _reply(status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    return status, {**JSON, **(headers or {})}, json.dumps(body).encode()


def _trouble(times: int) -> Answer:
    """Return a network failure: an overload, a proxy's page, or a truncated reply."""
    troubles: tuple[Answer, ...] = (
        (503, {**JSON, "retry-after": "0.1"}, b'{"error": {"code": "overloaded"}}'),
        (502, {"content-type": "text/html"}, b"<html>Bad Gateway</html>"),
        (200, JSON, b'{"status": "succ'),
    )
    return troubles[times % len(troubles)]
