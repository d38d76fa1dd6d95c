"""Request bodies about people and their keys."""

from typing import Annotated

from pydantic import AfterValidator, Field

from penstock.catalog.params import Boolean, Integer, Params, Text
from penstock.domain.people.roles import MAX_PERSON_KEYS, PersonRole, read_email
from penstock.web.admin.bodies import Amount, Label, NewKey, example, with_message

Email = Annotated[Text, AfterValidator(with_message(read_email))]


class InviteBody(Params):
    """A person who gets a role in the account."""

    model_config = example(email="ada@example.org", role="member")

    email: Email = Field(description="the address by which the person is known")
    name: Label | None = Field(default=None, description="the person's name, if the person is new here")
    role: PersonRole = Field(description="the role in the account")


class RoleBody(Params):
    """A role in an account."""

    model_config = example(role="viewer")

    role: PersonRole = Field(description="the role in the account")


class PersonBody(Params):
    """A new person."""

    model_config = example(email="ada@example.org", name="Ada")

    email: Email = Field(description="the address by which the person is known")
    name: Label | None = Field(default=None, description="the person's name")
    operator: Boolean = Field(default=False, description="true: the person administers the whole server")


class PersonPatch(Params):
    """Changes to a person."""

    model_config = example(active=False)

    operator: Boolean | None = Field(default=None, description="true: the person administers the whole server")
    active: Boolean | None = Field(
        default=None,
        description="false: the person's roles and keys end; true: they can be given again",
    )


class KeyPolicyBody(Params):
    """The limits of an account for keys of its people."""

    model_config = example(max_keys=5, max_budget="20.00")

    max_keys: Annotated[Integer, Field(ge=0, le=MAX_PERSON_KEYS)] = Field(
        description="working keys that one person may have"
    )
    max_budget: Amount | None = Field(
        default=None, description="USD that a new key may spend in a month, as a decimal string; null: any amount"
    )


class AccountKeyBody(NewKey):
    """A new key of the account, or of the person who makes it."""

    model_config = example(name="notebook", budgets=[{"period": "month", "cap": "10.00"}])
