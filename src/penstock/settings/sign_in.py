"""`[sign_in.NAME]` and `[sessions]`: providers by which people sign in, rules for roles, limits of sessions."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from penstock.domain.people.roles import LOCAL, PersonRole
from penstock.domain.people.sign_in import OPERATOR_ROLE, SessionPolicy, SignInRule, check_secure_url
from penstock.settings.problems import reject
from penstock.settings.table import Table
from penstock.settings.values import DAY, HOUR, Duration, split

MAX_PROVIDERS: Final = 20
MAX_RULES: Final = 500
MAX_SESSION_SECONDS: Final = 30 * DAY
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


def _check_provider_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name) or name == LOCAL:
        raise reject(
            "is not a provider's name", f"Use lower-case letters, digits and -, at most 40; `{LOCAL}` is taken."
        )
    return name


def _lower(value: Any) -> Any:
    return value.strip().lower().removeprefix("@") if isinstance(value, str) else value


class SignInRuleTable(Table):
    """One entry of `[[sign_in.NAME.rules]]`: a condition, and the role that it gives."""

    group: str | None = Field(default=None, min_length=1, description="a value of the claim `groups_claim`")
    claim: str | None = Field(default=None, min_length=1, description="another claim, or a path such as `a.b`")
    value: str | None = Field(default=None, min_length=1, description="of `claim`: its value, or one of its list")
    email_domain: Annotated[str | None, BeforeValidator(_lower)] = Field(
        default=None, pattern=f"^{_DOMAIN.pattern}$", description="the domain of a verified e-mail address"
    )
    account: str | None = Field(default=None, min_length=1, description="the account by name or id, which must exist")
    role: PersonRole | Literal["operator"] = Field(
        description="owner, admin, billing, member or viewer of the account; or operator, of the whole server"
    )

    @field_validator("role")
    @classmethod
    def check_form(cls, value: PersonRole | str, info: ValidationInfo) -> PersonRole | str:
        """Require one condition, and an account unless the rule makes operators."""
        found = info.data
        if not {"group", "claim", "value", "email_domain", "account"} <= found.keys():
            return value  # one of them is wrong, and already reported
        conditions = [name for name in ("group", "claim", "email_domain") if found[name] is not None]
        if len(conditions) != 1 or (found["claim"] is None) is not (found["value"] is None):
            remedy = "Keep one of the three; a `claim` needs its `value`."
            raise reject("needs one condition: `group`, `claim` with `value`, or `email_domain`", remedy)
        if (value == OPERATOR_ROLE) is (found["account"] is not None):
            remedy = "Operators have no `account`. All other roles need one."
            raise reject("does not go together with `account`", remedy)
        return value

    def rule(self, groups_claim: str) -> SignInRule:
        """Return the rule as the gateway uses it."""
        return SignInRule(
            claim=groups_claim if self.group is not None else self.claim,
            value=self.group if self.group is not None else self.value,
            email_domain=self.email_domain,
            account=self.account,
            role=self.role,  # type: ignore[arg-type]
        )


class SignInTable(Table):
    """`[sign_in.NAME]`: a provider of OpenID Connect."""

    issuer: str = Field(description="the provider's issuer, exactly as it names itself; https except on this machine")
    client_id: str = Field(min_length=1, max_length=500, description="the id that the provider gave this server")
    client_secret: SecretStr | None = Field(
        default=None, min_length=1, description="the secret that the provider gave; without it, a public client"
    )
    title: str = Field(default="", max_length=80, description="the name on the button; default: NAME")
    scopes: Annotated[tuple[str, ...], BeforeValidator(split)] = Field(
        default=("openid", "email", "profile"), max_length=20, description="the scopes to ask for; `openid` is added"
    )
    groups_claim: str = Field(
        default="groups", min_length=1, max_length=200, description="the claim with groups, or a path such as `a.b`"
    )
    trust_email: Literal["verified", "always"] = Field(
        default="verified",
        description="verified: an address counts if the provider says it is verified; always: every address counts",
    )
    userinfo: Literal["used", "unused"] = Field(
        default="used", description="used: claims that the ID token lacks are read from the provider's userinfo"
    )
    rules: tuple[SignInRuleTable, ...] = Field(default=(), max_length=MAX_RULES)

    @field_validator("issuer")
    @classmethod
    def check_issuer(cls, value: str) -> str:
        """Require https, except on this machine."""
        try:
            check_secure_url(value)
        except ValueError as error:
            raise reject(str(error), "Write it as https://login.example.com/…, as the provider names it.") from None
        if urlsplit(value).query:
            raise reject("has a query", "Write the issuer without `?`.")
        return value

    @field_validator("scopes")
    @classmethod
    def check_scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Require the characters of scopes, and add `openid`."""
        for scope in value:
            if not _SCOPE.fullmatch(scope):
                raise reject(f"`{scope[:80]}` is not a scope", "Scopes have no spaces, quotes and backslashes.")
        return value if "openid" in value else ("openid", *value)


class Sessions(Table):
    """`[sessions]`: the limits of people's sessions in the console."""

    idle: Annotated[Duration, Field(ge=60, le=MAX_SESSION_SECONDS)] = Field(
        default=8 * HOUR, description="how long a session lasts without a request, at least 1m"
    )
    max_age: Annotated[Duration, Field(ge=60, le=MAX_SESSION_SECONDS)] = Field(
        default=DAY, description="how long a session lasts at most, up to 30d; then the provider is asked again"
    )
    max_per_person: int = Field(
        default=20, ge=1, le=1_000, description="how many sessions a person may have; the oldest makes room for a new"
    )
    console_keys: Literal["accepted", "hidden"] = Field(
        default="accepted",
        description="hidden: the console offers no sign-in by key if there is a provider; keys themselves keep working",
    )

    def policy(self, providers: frozenset[str]) -> SessionPolicy:
        """Return the limits as the gateway uses them."""
        return SessionPolicy(
            idle_seconds=self.idle,
            max_seconds=self.max_age,
            max_per_person=self.max_per_person,
            providers=providers,
        )


ProviderName = Annotated[str, AfterValidator(_check_provider_name)]
Providers = Annotated[Mapping[ProviderName, SignInTable], Field(max_length=MAX_PROVIDERS)]
