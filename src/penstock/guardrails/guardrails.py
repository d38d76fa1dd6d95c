"""Inspect requests: rules first, then all hooks at once. The first refusal ends a request before it costs anything."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from penstock.domain.api_keys import ApiKey
from penstock.domain.guardrails.inquiry import Content, GuardrailFinding, Inquiry, Kind
from penstock.domain.guardrails.rules import Rule, search
from penstock.errors import ContentRefused, GuardrailUnavailable
from penstock.fairness.fair_queue import FairQueue
from penstock.guardrails.hook import Hook, HookOptions, HookSessions, write_letter
from penstock.observability import metrics

T = TypeVar("T")

MAX_INLINE_BYTES: Final = 1 << 13
"""Larger requests are searched in a thread, because they would block the event loop."""
THREADS: Final = 2
"""Threads that search, for all accounts in turn."""
MAX_AT_ONCE: Final = 8
"""Jobs of one request that are inspected at once."""
RETRY_SECONDS: Final = 1
NOT_ALLOWED: Final = "it has content that is not allowed here"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """One guardrail of the settings: a rule or a hook, and the requests that it inspects."""

    name: str
    applies_to: frozenset[str]
    models: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    rules: Sequence[Rule] = ()
    """Of a rule: it finds something if one of these does."""
    refuses: bool = True
    """Of a rule: whether it refuses requests in which it finds something, or notes them."""
    reason: str = ""
    hook: HookOptions | None = None
    fails_open: bool = False
    """Of a hook: whether requests are allowed while it fails."""

    def applies(self, kind: Kind, key: ApiKey, model: str) -> bool:
        """Return whether it inspects such a request."""
        if kind not in self.applies_to or (self.models and model not in self.models):
            return False
        return not self.accounts or not self.accounts.isdisjoint((key.account, key.account_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A request to inspect. Its content is read only if a guardrail applies."""

    kind: Kind
    key: ApiKey
    model: str
    endpoint: str
    request_id: str
    size: int
    """Bytes of the body."""
    read: Callable[[], Content]

    def inquire(self, content: Content) -> Inquiry:
        """Return the request as hooks see it."""
        return Inquiry(
            type=self.kind,
            account_id=self.key.account_id,
            account=self.key.account,
            key_id=self.key.public_id,
            model=self.model,
            endpoint=self.endpoint,
            request_id=self.request_id,
            content=content,
        )


class Guardrails:
    """All guardrails of the settings; one per process."""

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._guardrails: tuple[Guardrail, ...] = ()
        self._hooks: dict[str, Hook] = {}
        self._sessions = HookSessions()
        self._threads = FairQueue(THREADS)
        self.of_chat = False
        """Whether any guardrail inspects chat. Without one, a request costs nothing here."""
        self.of_generation = False
        """Whether any guardrail inspects generations."""

    def use(self, guardrails: Iterable[Guardrail]) -> None:
        """Use these from now on. A hook whose settings have not changed keeps its state."""
        self._guardrails = tuple(guardrails)
        self.of_chat = any("chat" in each.applies_to for each in self._guardrails)
        self.of_generation = any("generation" in each.applies_to for each in self._guardrails)
        wanted = [each.hook for each in self._guardrails if each.hook is not None]
        former = {hook.options: hook for hook in self._hooks.values()}
        self._hooks = {options.name: former.get(options) or self._open(options) for options in wanted}

    def _open(self, options: HookOptions) -> Hook:
        return Hook(options, self._sessions, self._clock, self._steady)

    async def close(self) -> None:
        """Close the connections to all hooks."""
        await self._sessions.close()

    async def inspect(self, request: Inspected) -> tuple[GuardrailFinding, ...]:
        """Return the findings of all guardrails that apply. Raise `ContentRefused` or `GuardrailUnavailable`."""
        chosen = [each for each in self._guardrails if each.applies(request.kind, request.key, request.model)]
        if not chosen:
            return ()
        rules, known_hooks = [each for each in chosen if each.hook is None], self._hooks
        if request.size > MAX_INLINE_BYTES:
            async with self._threads.place(request.key.account_id):
                content, found = await asyncio.to_thread(_search, request, rules)
        else:
            content, found = _search(request, rules)
        findings = {each.name: self._judge(each, is_found=hit) for each, hit in zip(rules, found, strict=True)}
        self._refuse(request, rules, findings)
        hooks = [each for each in chosen if each.hook is not None]
        if hooks:
            inquiry = request.inquire(content)
            letter = write_letter(inquiry)
            answers = await gather_all(known_hooks[each.name].ask(inquiry, letter) for each in hooks)
            findings |= {finding.name: finding for finding in answers}
            self._refuse(request, hooks, findings)
        return tuple(findings[each.name] for each in chosen)

    async def inspect_all(self, requests: Iterable[Inspected]) -> list[tuple[GuardrailFinding, ...]]:
        """Inspect the jobs of one request, a few at a time: else they would wait for each other's places."""
        turns = asyncio.Semaphore(MAX_AT_ONCE)

        async def inspect(request: Inspected) -> tuple[GuardrailFinding, ...]:
            async with turns:
                return await self.inspect(request)

        return await gather_all(map(inspect, requests))

    def _judge(self, guardrail: Guardrail, *, is_found: bool) -> GuardrailFinding:
        """Return the finding of a rule."""
        if not is_found:
            return GuardrailFinding(guardrail.name, "allow")
        reason = guardrail.reason or NOT_ALLOWED
        return GuardrailFinding(guardrail.name, "refuse" if guardrail.refuses else "allow", reason)

    def _refuse(
        self, request: Inspected, guardrails: Sequence[Guardrail], findings: dict[str, GuardrailFinding]
    ) -> None:
        """Count the findings of these guardrails, and raise if one of them ends the request."""
        found = [findings[each.name] for each in guardrails]
        for finding in found:
            metrics.GUARDRAIL_VERDICTS.count(finding.name, "annotate" if finding.is_note else finding.verdict)
        fields = {"account": request.key.account_id, "model": request.model, "type": request.kind}
        for finding in found:
            if finding.verdict == "refuse":
                log.info("a guardrail refused a request", extra={"fields": {"guardrail": finding.name, **fields}})
                raise ContentRefused(finding.reason or NOT_ALLOWED, finding.name)
        for each, finding in zip(guardrails, found, strict=True):
            if finding.verdict == "unavailable" and not each.fails_open:
                fields["guardrail"] = each.name
                log.warning("a guardrail is unavailable; a request was not accepted", extra={"fields": fields})
                raise GuardrailUnavailable(retry_after=RETRY_SECONDS)


def _search(request: Inspected, guardrails: Sequence[Guardrail]) -> tuple[Content, list[bool]]:
    """Read the content, and return for each rule whether it finds something there."""
    content = request.read()
    rules = [(place, rule) for place, each in enumerate(guardrails) for rule in each.rules]
    hits = search([rule for _, rule in rules], (each.text for each in content.texts)) if rules else []
    found = {place for (place, _), hit in zip(rules, hits, strict=True) if hit}
    return content, [place in found for place in range(len(guardrails))]


async def gather_all(wanted: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in their order. Raise the first error, and leave nothing running behind."""
    tasks = [asyncio.ensure_future(each) for each in wanted]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
