"""Schemas of answers about people and their keys, for the OpenAPI document."""

from typing import Literal

from pydantic import Field

from penstock.domain.people.roles import PersonRole
from penstock.web.openapi.admin_schemas import KeyRecord
from penstock.web.openapi.schemas import Moment, Shape


class MembershipShape(Shape):
    """A role in an account."""

    account_id: str
    account: str = Field(description="the account's name")
    role: PersonRole
    source: str = Field(description="`local`: given here; else the sign-in provider whose rule gave it")
    since: Moment


class OwnPerson(Shape):
    """The person who asks."""

    object: Literal["person"]
    id: str
    email: str
    name: str
    operator: bool = Field(description="true: may administer the whole server")
    account_id: str = Field(description="the account of this request")
    role: PersonRole = Field(description="your role in it")
    accounts: list[MembershipShape]
    endpoints: list[str] = Field(description="method and path of what the role may call")


class MemberRecord(Shape):
    """A person of an account."""

    object: Literal["member"]
    id: str
    email: str
    name: str
    role: PersonRole
    source: str = Field(description="`local`: given here; else the sign-in provider whose rule gave it")
    since: Moment


class MemberPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[MemberRecord]
    has_more: bool
    next_cursor: str | None


class PersonRecord(Shape):
    """A person with all roles."""

    object: Literal["person"]
    id: str
    email: str
    name: str
    created_at: Moment
    deactivated_at: Moment | None
    signed_in_at: Moment | None = Field(description="the latest sign-in")
    operator: bool = Field(description="true: may administer the whole server")
    accounts: list[MembershipShape]


class PersonPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[PersonRecord]
    has_more: bool
    next_cursor: str | None


class OwnKeyList(Shape):
    """Keys, newest first."""

    object: Literal["list"]
    data: list[KeyRecord]


class KeyPolicyRecord(Shape):
    """The limits of an account for keys of its people."""

    object: Literal["key_policy"]
    max_keys: int = Field(description="working keys that one person may have")
    max_budget: str | None = Field(description="USD that a new key may spend in a month; null: any amount")
