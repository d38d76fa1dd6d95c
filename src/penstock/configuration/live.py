"""Run-time settings in a running process: changed here, followed from everywhere, and reported."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from penstock.clocks import Clocks
from penstock.configuration import versions
from penstock.configuration.document import Document
from penstock.configuration.draft import SettingsDraft, make_draft, to_addition
from penstock.configuration.validation import build_checked, check_settings, close_new, to_request_error
from penstock.configuration.versions import StoredSettings
from penstock.errors import PenstockError, SettingNotFound, StoreUnavailable
from penstock.observability import metrics
from penstock.offers.offer import Offers
from penstock.sealing.sealer import Sealer
from penstock.sealing.vault import Vault
from penstock.settings.problems import SettingsError
from penstock.settings.tables import Settings
from penstock.store.database import Database
from penstock.store.queries.settings import version_rows
from penstock.store.queries.settings.version_rows import TOPIC, SettingsProcess, SettingsVersion
from penstock.upstream.connection_test import ConnectionOutcome, ConnectionTests

WATCH_SECONDS: Final = 0.5
"""Seconds between two looks for a new version. A signal of the store comes sooner."""
REPORT_SECONDS: Final = 15.0
PRESENT_SECONDS: Final = 60.0
"""Seconds after which a process that stopped reporting counts as ended."""
MAX_PROBLEM: Final = 1_000

log = logging.getLogger(__name__)


class LiveSettings:
    """Applies the newest version to this process. An unusable version is reported, and the one before stays in use."""

    def __init__(
        self,
        file: Settings,
        database: Database,
        vault: Vault,
        clocks: Clocks,
        process: str,
        use: Callable[[Settings], Awaitable[None]],
        offers: Callable[[], Offers],
        tests: ConnectionTests,
    ) -> None:
        self.file = file
        self.version = 0
        """The version in use."""
        self.problem: str | None = None
        self._seen = 0
        self._stored = StoredSettings(SettingsVersion(), {})
        """The version in use, so that a reload of the file needs no store."""
        self._database = database
        self._vault = vault
        self._clocks = clocks
        self._process = process
        self._use = use
        self._offers = offers
        self._tests = tests
        self._turn = asyncio.Lock()
        self._reported_at: float | None = None
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow all later versions."""
        self._watching = asyncio.create_task(self._watch(), name="run-time settings")

    async def stop(self) -> None:
        """Stop following, and take this process from the list."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._reported_at is not None:
            with suppress(StoreUnavailable):
                await self._database.write(version_rows.leave, self._process)

    async def reload(self, file: Settings) -> None:
        """Use other settings of the file, with the run-time settings. Raise SettingsError if they do not fit."""
        async with self._turn:
            await self._use(await self._build(file, self._stored))
            self.file = file
            if self.problem is not None:
                self._seen = -1  # the file may have been the reason, so the newest version is tried again

    async def follow(self) -> None:
        """Use the newest version, if it is not the one in use or known to be unusable."""
        async with self._turn:
            if await self._database.look(version_rows.newest) == self._seen:
                return
            stored = await self._database.read(versions.read)
            number = stored.version.version
            try:
                await self._use(await self._build(self.file, stored))
            except StoreUnavailable:
                raise
            except (SettingsError, PenstockError) as error:
                self._note(number, str(error)[:MAX_PROBLEM])
                metrics.SETTINGS_RELOADS.labels("refused").inc()
                fields = {"version": number, "in_use": self.version, "reason": self.problem}
                log.error(  # noqa: TRY400  the reason is in the message
                    "run-time settings cannot be used here; the version before stays in use", extra={"fields": fields}
                )
            else:
                self._stored = stored
                self._note(number, None)
                metrics.SETTINGS_RELOADS.labels("ok").inc()
                log.info("run-time settings applied", extra={"fields": {"version": number}})
        await self._report()

    async def check(self, draft: SettingsDraft, stored: StoredSettings) -> None:
        """Raise `InvalidRequest` if a draft cannot be used."""
        secrets = {**stored.open(await self._sealer_for(stored)), **draft.new}
        try:
            addition = to_addition(draft.document, secrets, self.file)
            await asyncio.to_thread(check_settings, self.file, addition, self._offers(), self._clocks)
        except SettingsError as error:
            raise to_request_error(error) from None

    async def change(
        self,
        actor: str,
        base: int | None,
        amend: Callable[[Document], Mapping[str, Any]],
        *,
        note: str = "",
        dry_run: bool = False,
    ) -> tuple[Document, SettingsVersion]:
        """Check and store a change. Return the document before, and the new version, which this process then uses.

        `base` is the version that the caller has seen; None: whichever is the newest.
        """
        stored = await self._database.read(versions.read)
        base = stored.version.version if base is None else base
        versions.check_base(stored.version.version, base)
        draft = make_draft(stored.version.document, amend(stored.version.document), self.file)
        await self.check(draft, stored)
        if dry_run:
            return stored.version.document, SettingsVersion(base, document=draft.document)
        sealer = await self._vault.sealer() if draft.new else None
        made = await self._database.write(versions.commit, actor, base, draft, sealer, self._clocks.now(), note=note)
        await self.follow()
        return stored.version.document, made

    async def restore(
        self, actor: str, base: int, version: int, *, note: str = "", dry_run: bool = False
    ) -> tuple[Document, SettingsVersion]:
        """Check an earlier version and make it the newest again, with its secrets. Return both as `change` does."""
        stored = await self._database.read(versions.read, version)
        before = await self._database.read(versions.read)
        versions.check_base(before.version.version, base)
        draft = SettingsDraft({part: dict(entries) for part, entries in stored.version.document.items()})
        await self.check(draft, stored)
        if dry_run:
            return before.version.document, SettingsVersion(base, document=draft.document)
        made = await self._database.write(
            versions.commit, actor, base, draft, None, self._clocks.now(), note=note, restored=version
        )
        await self.follow()
        return before.version.document, made

    async def test_connection(self, name: str, options: Mapping[str, Any] | None) -> ConnectionOutcome:
        """Make a cheap call to a stored vendor, or to one with these options."""
        stored = await self._database.read(versions.read)
        document = {part: dict(entries) for part, entries in stored.version.document.items()}
        vendors, former = document.setdefault("vendors", {}), self._offers()
        if options is not None:
            vendors[name] = {**options, "enabled": True}
        elif name in vendors and not self.file.is_from_file("vendors", name):
            vendors[name] = {**vendors[name], "enabled": True}
        else:
            vendor = former.chat_vendors.get(name) or former.vendors.get(name)
            if vendor is None:
                raise SettingNotFound(f"There is no vendor `{name[:200]}`.", param="name")
            return await self._tests.run(name, vendor)
        draft = make_draft(stored.version.document, document, self.file)
        secrets = {**stored.open(await self._sealer_for(stored)), **draft.new}
        addition = to_addition(draft.document, secrets, self.file)
        try:
            offers = await asyncio.to_thread(build_checked, self.file, addition, former, self._clocks)
        except SettingsError as error:
            raise to_request_error(error) from None
        try:
            return await self._tests.run(name, offers.chat_vendors.get(name) or offers.vendors[name])
        finally:
            await asyncio.to_thread(close_new, offers, former)

    async def _build(self, file: Settings, stored: StoredSettings) -> Settings:
        if not stored.version.version:
            return file
        secrets = stored.open(await self._sealer_for(stored))
        return await asyncio.to_thread(lambda: file.extend(to_addition(stored.version.document, secrets, file)))

    async def _sealer_for(self, stored: StoredSettings) -> Sealer | None:
        return await self._vault.sealer() if stored.sealed else None

    def _note(self, version: int, problem: str | None) -> None:
        self._seen, self.problem = version, problem
        if problem is None:
            self.version = version
        metrics.SETTINGS_VERSION.labels("newest").set(version)
        metrics.SETTINGS_VERSION.labels("in_use").set(self.version)
        self._reported_at = None

    async def _report(self) -> None:
        """Store the version in use, when it changed and from time to time. Without any version, store nothing."""
        now = self._clocks.steady()
        if self._seen < 1 or (self._reported_at is not None and now < self._reported_at + REPORT_SECONDS):
            return
        name, wall = f"{socket.gethostname()}:{os.getpid()}", self._clocks.now()
        report = SettingsProcess(self._process, name, self.version, self.problem, wall)
        await self._database.write(version_rows.report, report, wall - PRESENT_SECONDS)
        self._reported_at = now

    async def _watch(self) -> None:
        with self._database.signals.listen(TOPIC) as signal:
            while True:
                await signal.wait(WATCH_SECONDS)
                try:
                    await self.follow()
                    await self._report()
                except StoreUnavailable:
                    pass
                except Exception:
                    log.exception("following the run-time settings failed; retrying")
                    await asyncio.sleep(WATCH_SECONDS)
