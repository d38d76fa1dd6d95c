"""Request bodies of the admin endpoints."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from penstock.catalog.params import Boolean, Integer, Line, Number, Params, Text, as_object, unknown_name
from penstock.domain.accounts import (
    LONGEST_SECONDS,
    MAX_LIMIT,
    MAX_QUOTA,
    OVERLAP_SECONDS,
    Allowance,
    KeyWish,
    read_account_name,
    read_cap,
    read_label,
    read_time_zone,
)
from penstock.domain.api_keys import ApiKey, Limits, Scope
from penstock.domain.attribution.labels import MAX_KEY_TAGS, read_tag
from penstock.domain.budgets import Period
from penstock.errors import Detail
from penstock.offers.offer import Offers

T = TypeVar("T")

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def with_message(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a check whose message is kept as written, without Pydantic's prefix."""

    def check(value: Any) -> T:
        try:
            return function(value)
        except ValueError as error:
            reason = str(error)
            raise PydanticCustomError("value", "{reason}", {"reason": reason[0].upper() + reason[1:]}) from None

    return check


def _read_moment(value: Any, now: float) -> float:
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        raise ValueError("should be RFC 3339 with a zone, such as 2027-01-31T09:30:00Z")
    moment = datetime.fromisoformat(value.upper()).timestamp()
    if not 0 < moment - now <= LONGEST_SECONDS:
        raise ValueError("should be a time to come, within a hundred years")
    return moment


def _validate_moment(value: Any, info: ValidationInfo) -> float:
    """Read a time to come, as seen at the time of the request."""
    now: float = cast("Mapping[str, Any]", info.context)["now"]
    return with_message(partial(_read_moment, now=now))(value)


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a body with this example."""
    return ConfigDict(json_schema_extra={"additionalProperties": False, "example": fields})


DateTime = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Moment = Annotated[float, BeforeValidator(_validate_moment, json_schema_input_type=DateTime)]
Amount = Annotated[int, BeforeValidator(with_message(read_cap), json_schema_input_type=str | int | float)]
Zone = Annotated[Text, AfterValidator(with_message(read_time_zone))]
Label = Annotated[Text, AfterValidator(with_message(read_label))]
Reason = Annotated[Text, AfterValidator(with_message(partial(read_label, least=1)))]
Tag = Annotated[Text, AfterValidator(with_message(read_tag))]
AccountName = Annotated[Text, AfterValidator(with_message(read_account_name))]
Limit = Annotated[Integer, Field(ge=1, le=MAX_LIMIT)]
Quota = Annotated[Integer, Field(ge=0, le=MAX_QUOTA)]
Models = Annotated[list[Text], Field(max_length=1000)]
LogWish = Boolean | None
LOG_WISH = "true: prompts and answers of its requests are logged; false: they are not; null: as its account has it"


class LimitsBody(Params):
    """Limits. One that you leave out stays as it is, or is not set."""

    requests_per_minute: Limit | None = Field(default=None, description="requests that may begin in a minute")
    tokens_per_minute: Limit | None = Field(default=None, description="chat tokens that may be used in a minute")
    concurrent_jobs: Limit | None = Field(default=None, description="jobs that may be open at once")
    concurrent_streams: Limit | None = Field(default=None, description="streams that may be open at once")


class BudgetBody(Params):
    """A hard limit on spending in a period."""

    model_config = example(cap="10.00", time_zone="Europe/Berlin")

    cap: Amount = Field(description='USD, as a decimal string such as "10.00"')
    time_zone: Zone = Field(default="UTC", description="IANA name of the zone whose days and months count")


class PeriodicBudget(BudgetBody):
    """A budget and its period."""

    period: Period = Field(description="`total` never resets; the others reset each day or month")


class TagBudgetBody(PeriodicBudget):
    """A hard limit on spending with a tag in a period."""

    model_config = example(tag="team-search", period="month", cap="50.00")

    tag: Tag = Field(description="1 to 64 printable characters without a comma")


class Budgeted(Params):
    """Limits and budgets of something new."""

    limits: LimitsBody | None = Field(default=None, description="default: none")
    budgets: Annotated[list[PeriodicBudget], Field(max_length=3)] | None = Field(
        default=None, description="one for each period; default: none"
    )

    nested: ClassVar = {"limits": LimitsBody, "budgets": PeriodicBudget}

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield a problem for each period with more than one budget."""
        seen: set[str] = set()
        items = given.get("budgets")
        for number, item in enumerate(cast("list[Any]", items) if isinstance(items, list) else ()):
            period = str(as_object(item).get("period"))
            if period in seen:
                yield Detail(f"budgets.{number}.period", f"There is already a budget for `{period[:80]}`.")
            seen.add(period)

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """Return the requested budgets."""
        return tuple(allowance_of(budget, budget.period) for budget in self.budgets or ())


class AccountBody(Budgeted):
    """A new account."""

    model_config = example(name="studio", limits={"concurrent_jobs": 4}, budgets=[{"period": "month", "cap": "50.00"}])

    name: AccountName = Field(description="1 to 200 printable characters that no other account has")
    storage_quota: Quota | None = Field(
        default=None, description="bytes of files and assets it may keep; default: as the settings say"
    )
    content_log: Boolean = Field(default=False, description="true: prompts and answers of its keys are logged")


class AccountPatch(Params):
    """Changes to an account."""

    model_config = example(limits={"requests_per_minute": 600, "tokens_per_minute": None})

    name: AccountName | None = Field(default=None, description="a new name; the id does not change")
    limits: LimitsBody | None = Field(default=None, description="the limits to change; null removes one")
    storage_quota: Quota | None = Field(
        default=None, description="bytes of files and assets it may keep; null: as the settings say"
    )
    closed: Boolean | None = Field(default=None, description="true: its keys are refused; false: they work again")
    content_log: Boolean | None = Field(default=None, description="true: prompts and answers of its keys are logged")

    nested: ClassVar = {"limits": LimitsBody}


class KeyFields(Params):
    """Name, permissions, end and defaults of a key."""

    name: Label | None = Field(default=None, description="what it is for, up to 200 printable characters")
    models: Models | None = Field(default=None, description="the models it may use; none or empty: all")
    endpoints: list[Scope] | None = Field(default=None, description="what it may do; none or empty: everything")
    expires_at: Moment | None = Field(default=None, description="when it ends; default: never")
    expires_in: Number | None = Field(
        default=None, gt=0, le=LONGEST_SECONDS, description="seconds from now until it ends, instead of `expires_at`"
    )
    reuse: Literal["exact"] | None = Field(
        default=None, description="exact: its generations get the kept results of equal requests, free of charge"
    )
    tags: Annotated[list[Tag], Field(max_length=MAX_KEY_TAGS)] | None = Field(
        default=None, description="tags of all its requests, which callers cannot remove; none or empty: no tags"
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield a problem if the end is given twice."""
        yield from super().conflicts(given)
        if "expires_at" in given and "expires_in" in given:
            yield Detail("expires_in", "Send `expires_at` or `expires_in`, not both.")

    def ending(self, now: float) -> float | None:
        """Return the time when the key ends, or None for never."""
        return self.expires_at if self.expires_in is None else now + self.expires_in


class NewKey(KeyFields, Budgeted):
    """The attributes of a new key."""

    def wish(self, now: float) -> KeyWish:
        """Return the requested key."""
        return KeyWish(
            name=self.name or "",
            models=frozenset(self.models or ()),
            scopes=frozenset(self.endpoints or ()),
            expires_at=self.ending(now),
            limits=limits_of(self.limits),
            allowances=self.allowances,
            reuse=self.reuse,
            tags=tuple(dict.fromkeys(self.tags or ())),
        )


class KeyBody(NewKey):
    """A new key."""

    model_config = example(
        account="studio", name="website", endpoints=["chat"], budgets=[{"period": "month", "cap": "10.00"}]
    )

    account: Text = Field(min_length=1, max_length=200, description="the account's id or name")
    content_log: LogWish = Field(default=None, description=LOG_WISH)

    def wish(self, now: float) -> KeyWish:
        """Return the requested key."""
        return replace(super().wish(now), content_log=self.content_log)


class KeyPatch(KeyFields):
    """Changes to a key. Null removes a value."""

    model_config = example(models=["vendorb_video_31"], limits={"concurrent_jobs": 2})

    content_log: LogWish = Field(default=None, description=LOG_WISH)
    limits: LimitsBody | None = Field(default=None, description="the limits to change; null removes one")

    nested: ClassVar = {"limits": LimitsBody}

    def apply(self, key: ApiKey, given: Mapping[str, Any], now: float) -> ApiKey:
        """Return the key with the given changes, nulls included."""
        changes: dict[str, Any] = {}
        if "name" in given:
            changes["name"] = self.name or ""
        if "models" in given:
            changes["models"] = frozenset(self.models or ())
        if "endpoints" in given:
            changes["scopes"] = frozenset(self.endpoints or ())
        if "expires_at" in given or "expires_in" in given:
            changes["expires_at"] = self.ending(now)
        if "reuse" in given:
            changes["reuse"] = self.reuse
        if "tags" in given:
            changes["tags"] = tuple(dict.fromkeys(self.tags or ()))
        if "content_log" in given:
            changes["content_log"] = None if self.content_log is None else int(self.content_log)
        return replace(key, **changes, limits=change_limits(key.limits, given.get("limits", {})))


class RotateBody(Params):
    """Options for the rotation of a key."""

    model_config = example(overlap_seconds=3600)

    overlap_seconds: Number = Field(
        default=OVERLAP_SECONDS,
        ge=0,
        le=LONGEST_SECONDS,
        description="seconds that the old key still works; 0: it ends at once",
    )


class ReasonBody(Params):
    """The reason for a correction of the ledger."""

    model_config = example(reason="the film was cut off")

    reason: Reason = Field(description="for the ledger and the audit log")


# -- conversions


def allowance_of(budget: BudgetBody, period: Period) -> Allowance:
    """Return the allowance that a budget asks for."""
    return Allowance(period=period, cap=budget.cap, time_zone=budget.time_zone)


def limits_of(body: LimitsBody | None) -> Limits:
    """Return the limits in a body, or none."""
    return Limits() if body is None else Limits(**body.model_dump())


def change_limits(limits: Limits, given: Any) -> Limits:
    """Return the limits with the given changes. Null for all of them removes every limit."""
    if given is None:
        return Limits()
    wanted = LimitsBody.model_validate(given)
    return replace(limits, **{name: getattr(wanted, name) for name in cast("Mapping[str, Any]", given)})


def unknown_models(offers: Offers, given: Mapping[str, Any]) -> Iterator[Detail]:
    """Yield a problem for each model that is not offered."""
    known = {*offers.by_model, *offers.chat}
    models = given.get("models")
    for number, model in enumerate(cast("list[Any]", models) if isinstance(models, list) else ()):
        if isinstance(model, str) and model not in known:
            yield Detail(f"models.{number}", unknown_name("model", model, known))


class SettingsParts(Params):
    """Vendors, models and limits by name. In a change, null removes an entry."""

    vendors: Mapping[str, Any] | None = Field(default=None, description="tables of vendors, each with `enabled`")
    models: Mapping[str, Any] | None = Field(default=None, description="tables of models, each with `enabled`")
    limits: Mapping[str, Any] | None = Field(
        default=None, description="limits of the settings file by dotted name, such as `jobs.max_waiting`"
    )


class SettingsPatch(SettingsParts):
    """Entries of the run-time settings to set as a whole, or to remove. All others stay."""

    model_config = example(base_version=3, vendors={"acme": {"type": "openai_compatible", "api_key": "sk-…"}})

    base_version: Integer | None = Field(default=None, description="the version that you have read; or use `If-Match`")
    note: Line = Field(default="", max_length=200, description="the reason, for the history")
    dry_run: Boolean = Field(default=False, description="true: check the change, and store nothing")


class SettingsBody(SettingsPatch):
    """All run-time settings, such as those of an export. Entries that are left out are removed."""

    model_config = example(base_version=3, vendors={}, models={})


class RestoreBody(Params):
    """Options for bringing back a version."""

    model_config = example(base_version=4)

    base_version: Integer | None = Field(default=None, description="the version that you have read; or use `If-Match`")
    note: Line = Field(default="", max_length=200, description="the reason, for the history")
    dry_run: Boolean = Field(default=False, description="true: check the version and show what changes, store nothing")


class ConnectionTestBody(Params):
    """A vendor's table that is not stored yet. Without it, the stored vendor is tested."""

    model_config = example(options={"type": "openai_compatible", "api_key": "sk-…"})

    options: Mapping[str, Any] | None = Field(default=None, description="the table, as in a change")
