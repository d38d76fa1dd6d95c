"""The built-in engines with the API of a vendor: takes orders, makes each in a child process, keeps the results.

An order is a folder, so it outlives the process. After a crash, the next status request starts it again.
"""

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from penstock_engines.studio.run import INPUTS, Limits, Run

Answer = tuple[int, Mapping[str, str], bytes | Path]
JSON: Final = {"content-type": "application/json"}
LIBRARIES: Final = ("cv2", "fast_simplification", "numpy", "onnxruntime")
KEPT_SECONDS: Final = 900.0
"""Time that a result is kept for download."""
FORGOTTEN_SECONDS: Final = 86400.0
"""Time that an order is kept without a status request."""
SWEEP_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
"""Time to wait for a killed child."""
REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
INPUT: Final = re.compile(r"[a-z_]{1,40}(?:\.[0-9]{1,3})?")
"""The name of an input: a param, with its position if the param takes several files."""


class Studio:
    """Answers like a vendor's HTTP API. Called from threads."""

    def __init__(self, folder: Path, weights: Path, limits: Limits) -> None:
        self._folder = folder / "orders"
        self._weights = weights
        self._limits = limits
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._swept_at = 0.0
        self._is_closed = False

    def answer(self, method: str, path: str, body: bytes, be_sure: Callable[[], None] | None = None) -> Answer:
        """Route one request. `be_sure` raises if an order must not be placed any more."""
        self._sweep()
        match (method, path.strip("/").split("/")):
            case ("PUT", ["orders", order_id, "inputs", name]) if _is_input(order_id, name):
                return self._take_input(order_id, name, body)
            case ("PUT", ["orders", order_id]) if REFERENCE.fullmatch(order_id):
                return self._take_order(order_id, json.loads(body), be_sure)
            case ("GET", ["orders", order_id]) if self._has(order_id):
                return _reply(200, self._state(order_id))
            case ("POST", ["orders", order_id, "cancel"]) if self._has(order_id):
                return self._cancel(order_id)
            case ("GET", ["orders", order_id, "outputs", name]) if self._has(order_id):
                return self._download(order_id, name)
            case _:
                return _reply(404, {"error": {"code": "not_found", "message": "There is no such order."}})

    place = answer

    def close(self) -> None:
        """Stop every child. Their orders are started again by the next status request."""
        with self._lock:
            runs, self._runs = list(self._runs.values()), {}
            self._is_closed = True
        for run in runs:
            run.stop()
        for run in runs:
            run.join(CLOSE_SECONDS)

    # -- the endpoints

    def _take_input(self, order_id: str, name: str, data: bytes) -> Answer:
        folder = self._folder / order_id / INPUTS
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / name, data)
        return _reply(200, {})

    def _take_order(self, order_id: str, order: dict[str, Any], be_sure: Callable[[], None] | None) -> Answer:
        if missing := [name for name in LIBRARIES if find_spec(name) is None]:
            message = (
                f"The built-in engines are not installed ({', '.join(missing)}): run pip install 'penstock[local]'."
            )
            return _reply(501, {"error": {"code": "not_installed", "message": message}})
        folder = self._folder / order_id
        folder.mkdir(parents=True, exist_ok=True)
        if be_sure is not None:
            be_sure()
        _write(folder / "order.json", json.dumps(order).encode())
        self._ensure_running(order_id)
        return _reply(201, {"id": order_id})

    def _state(self, order_id: str) -> dict[str, Any]:
        """Return the state of the order. Start it again if its process was killed."""
        result = self._result(order_id)
        if result is not None:
            return result
        run = self._ensure_running(order_id)
        return (
            {"status": "running", "progress": run.progress, "eta_seconds": run.estimate_rest()}
            if run
            else {
                "status": "running",
                "progress": None,
                "eta_seconds": None,
            }
        )

    def _cancel(self, order_id: str) -> Answer:
        with self._lock:
            run = self._runs.pop(order_id, None)
        if run is not None:
            run.stop()
        if self._result(order_id) is None:
            self._conclude(order_id, {"status": "canceled"})
        return _reply(200, {"id": order_id})

    def _download(self, order_id: str, name: str) -> Answer:
        result = self._result(order_id) or {}
        if name not in [output["name"] for output in result.get("outputs", ())]:
            return _reply(404, {"error": {"code": "not_found", "message": "There is no such output."}})
        return 200, {"content-type": "application/octet-stream"}, self._folder / order_id / "made" / name

    # -- orders and their child processes

    def _has(self, order_id: str) -> bool:
        return bool(REFERENCE.fullmatch(order_id)) and (self._folder / order_id / "order.json").exists()

    def _result(self, order_id: str) -> dict[str, Any] | None:
        try:
            return json.loads((self._folder / order_id / "result.json").read_bytes())
        except FileNotFoundError:
            return None

    def _ensure_running(self, order_id: str) -> Run | None:
        with self._lock:
            if order_id in self._runs or self._is_closed or self._result(order_id) is not None:
                return self._runs.get(order_id)
            run = Run(self._folder / order_id, self._weights, self._limits, lambda end: self._ended(order_id, run, end))
            self._runs[order_id] = run
        run.start()
        return run

    def _ended(self, order_id: str, run: Run, result: dict[str, Any]) -> None:
        """Store the result of a child that has ended, unless it was stopped on purpose."""
        with self._lock:
            if self._runs.get(order_id) is not run:
                return
            self._conclude(order_id, result)
            del self._runs[order_id]

    def _conclude(self, order_id: str, result: dict[str, Any]) -> None:
        folder = self._folder / order_id
        _write(folder / "result.json", json.dumps(result).encode())
        shutil.rmtree(folder / INPUTS, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove old results, and orders that nobody asks for."""
        now = time.time()
        with self._lock:
            if now < self._swept_at + SWEEP_SECONDS or not self._folder.exists():
                return
            self._swept_at = now
            for folder in self._folder.iterdir():
                if folder.name not in self._runs and _is_old(folder, now):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_input(order_id: str, name: str) -> bool:
    return bool(REFERENCE.fullmatch(order_id) and INPUT.fullmatch(name))


def _is_old(folder: Path, now: float) -> bool:
    for path, seconds in ((folder / "result.json", KEPT_SECONDS), (folder, FORGOTTEN_SECONDS)):
        if path.exists() and now > path.stat().st_mtime + seconds:
            return True
    return False


def _write(path: Path, data: bytes) -> None:
    """Write the file atomically."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(data)
    fresh.replace(path)


def _reply(status: int, body: dict[str, Any]) -> Answer:
    return status, JSON, json.dumps(body).encode()
