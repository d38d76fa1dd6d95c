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


class SignInProvider(Shape):
    """A provider by which one may sign in."""

    name: str
    title: str = Field(description="the name on the button")


class SignInWays(Shape):
    """The ways to sign in to the console."""

    object: Literal["sign_in"]
    keys: bool = Field(description="true: the console offers to sign in by a key")
    providers: list[SignInProvider]
    signed_in: bool = Field(description="true: the cookie of this request is that of a session")


class SessionShape(Shape):
    """A session in the console."""

    object: Literal["session"]
    id: str
    provider: str
    title: str = Field(description="the provider's name on the button")
    browser: str = Field(description="the `user-agent` of the sign-in")
    address: str = Field(description="the address of the sign-in")
    created_at: Moment
    seen_at: Moment = Field(description="the latest request, to a minute")
    expires_at: Moment = Field(description="the end, whatever is requested until then")
    current: bool = Field(description="true: the session of this request")


class SessionList(Shape):
    """Sessions, newest first."""

    object: Literal["list"]
    data: list[SessionShape]


class OwnSession(SessionShape):
    """The session of this request, with the person and their roles."""

    person_id: str
    email: str
    name: str
    operator: bool = Field(description="true: may administer the whole server")
    account_id: str | None = Field(description="the account of requests without `x-penstock-account`")
    accounts: list[MembershipShape]


class SignOut(Shape):
    """The end of a session."""

    object: Literal["sign_out"]
    redirect: str | None = Field(description="the address at which the provider ends its own session")


class SessionsEnded(Shape):
    """The end of several sessions."""

    object: Literal["sessions_ended"]
    ended: int = Field(description="the number of sessions")


class KeyPolicyRecord(Shape):
    """The limits of an account for keys of its people."""

    object: Literal["key_policy"]
    max_keys: int = Field(description="working keys that one person may have")
    max_budget: str | None = Field(description="USD that a new key may spend in a month; null: any amount")
