"""Kept responses of accounts: found, listed, continued and deleted; and background ones, alive by heartbeat."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import msgspec

from penstock.chat.kept import items
from penstock.chat.kept.items import ItemPage
from penstock.clocks import Clocks
from penstock.domain.kept.responses import (
    ID,
    MAX_CHAIN_BYTES,
    MAX_CHAIN_RESPONSES,
    KeepPolicy,
    KeptResponse,
    ResponseStatus,
)
from penstock.errors import BodyTooLarge, InvalidRequest, ResponseNotFound, StoreUnavailable, VendorFailed
from penstock.store.database import Connection, Database
from penstock.store.queries.chat import response_rows
from penstock.store.queries.chat.response_rows import RunLease
from penstock.store.signals import background

HEARTBEAT_SECONDS: Final = 5.0
Order: TypeAlias = Literal["asc", "desc"]
RunKey: TypeAlias = tuple[str, str]
"""The account and the id of a background response."""

log = logging.getLogger(__name__)


class _Head(msgspec.Struct):
    """The fields of a response object that are read."""

    id: str
    status: ResponseStatus
    model: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode


class KeptResponses:
    """The kept responses of all accounts; one per process."""

    def __init__(self, database: Database, policy: Callable[[], KeepPolicy], process: str, clocks: Clocks) -> None:
        self._database = database
        self._policy = policy
        self._process = process
        self._clock = clocks.now
        self._tasks: dict[RunKey, asyncio.Task[None]] = {}
        self._heartbeat: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """Return whether the operator has responses kept."""
        return self._policy().retention_seconds > 0

    @property
    def quota_bytes(self) -> int:
        """Return the number of bytes that an account keeps, which is also the most for one response."""
        return self._policy().quota_bytes

    # -- keeping and reading

    async def keep(
        self, account_id: str, response: dict[str, Any], given: bytes, previous_id: str | None = None
    ) -> KeptResponse:
        """Keep a response that has ended. `given` is the `input` of its request."""
        kept = self._record(account_id, response, given, previous_id)
        await self._database.write(response_rows.add, kept, items.output_ids(kept.body), self.quota_bytes)
        return kept

    async def find(self, account_id: str, response_id: str) -> KeptResponse:
        """Return a response of this account."""
        found = None
        if ID.fullmatch(response_id):
            found = await self._database.look(response_rows.find, account_id, response_id, self._clock())
        if found is None:
            raise self._not_found(response_id)
        return found

    async def delete(self, account_id: str, response_id: str) -> None:
        """Delete a response at once, and end it if it runs."""
        if not ID.fullmatch(response_id):
            raise self._not_found(response_id)
        try:
            await self._database.write(response_rows.remove, account_id, response_id, self._clock())
        except ResponseNotFound:
            raise self._not_found(response_id) from None
        self._stop_run((account_id, response_id))

    async def items(
        self, account_id: str, response_id: str, after: str | None = None, limit: int = 20, order: Order = "desc"
    ) -> ItemPage:
        """Return a page of the input items of a response."""
        found = await self.find(account_id, response_id)
        shown = items.show(found.input, response_id)
        page = items.cut_page(shown if order == "asc" else shown[::-1], after, limit)
        if page is None:
            raise InvalidRequest(f"`after` names no input item of {response_id}.", param="after")
        return page

    async def history(self, account_id: str, previous_id: str) -> list[msgspec.Raw]:
        """Return the input and output items of a conversation up to this response, in order."""
        if not ID.fullmatch(previous_id):
            raise self._not_continued(previous_id)
        return await self._database.read(self._read_history, account_id, previous_id)

    def _read_history(self, connection: Connection, account_id: str, previous_id: str) -> list[msgspec.Raw]:
        links = response_rows.chain(connection, account_id, previous_id, self._clock())
        if not links:
            raise self._not_continued(previous_id)
        if links[0].status.is_running:
            raise _refuse(f"Previous response '{previous_id}' is not finished: it is {links[0].status.value}.")
        if len(links) > MAX_CHAIN_RESPONSES or sum(link.bytes for link in links) > MAX_CHAIN_BYTES:
            raise _refuse(
                f"The conversation before '{previous_id}' is too long: at most {MAX_CHAIN_RESPONSES} responses of "
                f"{MAX_CHAIN_BYTES >> 20} MiB together can be continued. Send the items that matter in `input`."
            )
        if links[-1].previous_id is not None:
            raise self._not_continued(links[-1].previous_id)
        found: list[msgspec.Raw] = []
        for turn in response_rows.turns(connection, account_id, [link.id for link in reversed(links)]):
            found += items.as_items(turn.input)
            found += items.repeat_output(turn.body)
        return found

    async def resolve(self, account_id: str, given: Sequence[msgspec.Raw]) -> list[msgspec.Raw]:
        """Replace items that only refer to an output item of a kept response by that item."""
        wanted = items.references(given)
        if not wanted:
            return list(given)
        known = [each for each in wanted if ID.fullmatch(each)]
        bodies = await self._database.read(response_rows.bodies_with, account_id, known, self._clock()) if known else []
        found = {items.id_of(item): item for body in bodies for item in items.output_items(body)}
        resolved = list(given)
        for item_id, place in wanted.items():
            if item_id not in found:
                message = f"Item with id '{item_id}' not found. It is not kept, or not any more: send the item itself."
                raise InvalidRequest(message, param="input", code="")
            resolved[place] = found[item_id]
        return resolved

    # -- background responses

    async def begin_background(
        self, account_id: str, response: dict[str, Any], given: bytes, previous_id: str | None = None
    ) -> KeptResponse:
        """Keep a response that this process is going to run. From now on it is ended if the process dies."""
        kept = self._record(account_id, response, given, previous_id, is_background=True)
        await self._database.write(response_rows.add, kept, (), self.quota_bytes, self._lease())
        return kept

    def run(self, kept: KeptResponse, task: asyncio.Task[None]) -> None:
        """Cancel this task when its response is canceled or deleted, here or by another process."""
        key = kept.account_id, kept.id
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        if self._heartbeat is None or self._heartbeat.done():
            self._heartbeat = asyncio.create_task(self._beat(), name="kept responses")

    async def start(self, kept: KeptResponse) -> bool:
        """Record that a queued response runs now. Return False if it was canceled or deleted meanwhile."""
        return await self._database.write(response_rows.start, kept.account_id, kept.id, self._process)

    async def finish(self, kept: KeptResponse, response: dict[str, Any]) -> bool:
        """Record the end of a background response. Return False if it was canceled, deleted or given up meanwhile."""
        ended = self._record(kept.account_id, {**response, "id": kept.id}, kept.input, kept.previous_id)
        return await self._database.write(response_rows.finish, ended, items.output_ids(ended.body), self._process)

    async def fail(self, kept: KeptResponse, error: dict[str, Any]) -> bool:
        """Record that a background response has failed. Return False if it was canceled or deleted meanwhile."""
        return await self._database.write(
            response_rows.finish, kept.end(ResponseStatus.FAILED, error), (), self._process
        )

    async def cancel(self, account_id: str, response_id: str) -> KeptResponse:
        """Cancel a background response. One that has ended stays as it is."""
        found = await self.find(account_id, response_id)
        if not found.is_background:
            raise InvalidRequest(
                "Cannot cancel a synchronous response: only those created with `background` can be canceled.", code=""
            )
        if not found.status.is_running:
            return found
        ended = await self._database.write(response_rows.cancel, account_id, response_id, self._clock())
        self._stop_run((account_id, response_id))
        return ended

    async def stop(self) -> None:
        """End this process's background responses. They are recorded as failed."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            await asyncio.gather(self._heartbeat, return_exceptions=True)
        running = list(self._tasks.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if running:
            with suppress(StoreUnavailable):  # then they are ended when the lease is over
                await self._database.write(response_rows.end_owned, self._process)

    async def _beat(self) -> None:
        """Renew the lease while there are responses to run, and stop those that were canceled elsewhere."""
        with self._database.signals.listen(background(self._process)) as signal:
            while self._tasks:
                await signal.wait(HEARTBEAT_SECONDS)
                begun = set(self._tasks)
                try:
                    ids = [response_id for _, response_id in begun]
                    alive = await self._database.write(response_rows.renew, self._lease(), ids)
                except StoreUnavailable as error:
                    reason = {"reason": error.message}
                    log.warning("a heartbeat was not written; it is retried", extra={"fields": reason})
                    continue
                for key in begun - alive:
                    self._stop_run(key)

    def _stop_run(self, key: RunKey) -> None:
        if (task := self._tasks.get(key)) is not None:
            task.cancel()

    # -- parts

    def _record(
        self,
        account_id: str,
        response: dict[str, Any],
        given: bytes,
        previous_id: str | None,
        *,
        is_background: bool = False,
    ) -> KeptResponse:
        now, body = self._clock(), msgspec.json.encode(response)
        head = _read_head(body)
        kept = KeptResponse(
            account_id=account_id,
            id=head.id,
            created_at=now,
            expires_at=now + self._policy().retention_seconds,
            status=head.status,
            model=head.model,
            previous_id=previous_id,
            is_background=is_background,
            input=given,
            body=body,
        )
        if kept.size > self.quota_bytes:
            raise BodyTooLarge(f"The response cannot be kept: an account keeps at most {self.quota_bytes >> 20} MiB.")
        if not ID.fullmatch(kept.id) or kept.id == previous_id:
            raise VendorFailed("The response cannot be kept: the vendor gave it no id of its own.")
        return kept

    def _lease(self) -> RunLease:
        return RunLease(self._process, self._clock())

    def _not_found(self, response_id: str) -> ResponseNotFound:
        hint = "" if self.is_on else " This server keeps no responses: `chat.response_retention` is 0."
        return ResponseNotFound(f"Response with id '{response_id[:128]}' not found.{hint}")

    def _not_continued(self, previous_id: str) -> InvalidRequest:
        return _refuse(
            f"Previous response with id '{previous_id[:128]}' not found. It was never kept, was deleted, or is past "
            "its retention. Send the whole conversation in `input` instead.",
            "previous_response_not_found",
        )


def _read_head(body: bytes) -> _Head:
    try:
        return _decode_head(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise VendorFailed(f"The response cannot be kept: {error}.") from None


def _refuse(message: str, code: str = "invalid_value") -> InvalidRequest:
    return InvalidRequest(message, param="previous_response_id", code=code)
