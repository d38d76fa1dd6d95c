"""`[[guardrails]]`: rules and hooks that inspect requests before they are accepted."""

import base64
import binascii
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from penstock.domain.guardrails.rules import WORD, compile_pattern
from penstock.domain.webhooks import SECRET_PREFIX
from penstock.settings.problems import reject
from penstock.settings.table import Table
from penstock.settings.values import Duration, split

MIN_SECRET_BYTES: Final = 16
MAX_WORDS: Final = 10_000
MAX_PATTERNS: Final = 100
MAX_SECONDS: Final = 60.0
OF_HOOKS: Final = ("secret", "timeout_seconds", "on_failure")
OF_RULES: Final = ("action", "reason")
RequestKind = Literal["chat", "generation"]
Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(split)]


class GuardrailTable(Table):
    """One entry of `[[guardrails]]`: a hook (`url`), or a rule (`words`, `patterns`)."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", description="its name in records and metrics")
    applies_to: tuple[RequestKind, ...] = Field(
        default=("chat", "generation"), min_length=1, description="the requests that it inspects: chat, generation"
    )
    models: Texts = Field(default=(), description="only requests for these models; default: all")
    accounts: Texts = Field(default=(), description="only requests of these accounts, by name or id; default: all")
    url: str | None = Field(default=None, description="of a hook: the http(s) URL that is asked about each request")
    secret: SecretStr | None = Field(
        default=None, description="of a hook: the secret that signs its requests, `whsec_` and Base64"
    )
    timeout_seconds: Annotated[Duration, Field(gt=0, le=MAX_SECONDS)] = Field(
        default=2.0, description="of a hook: how long its answer may take"
    )
    on_failure: Literal["refuse", "allow"] = Field(
        default="refuse", description="of a hook: what happens to requests while it fails"
    )
    words: Texts = Field(default=(), max_length=MAX_WORDS, description="of a rule: words and phrases, in any case")
    patterns: Texts = Field(
        default=(),
        max_length=MAX_PATTERNS,
        description="of a rule: regular expressions, in the syntax of Rust's `regex`",
    )
    action: Literal["refuse", "annotate"] = Field(
        default="refuse", description="of a rule: what happens to requests in which it finds something"
    )
    reason: str = Field(
        default="", max_length=500, validate_default=True, description="of a rule: the reason that callers get"
    )

    @field_validator("url")
    @classmethod
    def check_url(cls, value: str | None) -> str | None:
        """Require an HTTP address without credentials. It may be in a private network: the operator set it."""
        if value is None:
            return None
        try:
            parts = urlsplit(value)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address, parts = False, urlsplit("")
        if not is_address or parts.username is not None or not value.isascii() or not value.isprintable():
            raise reject("is not an http(s) URL", "Write it as http://host:port/path; use `secret` to sign requests.")
        return value

    @field_validator("secret")
    @classmethod
    def check_secret(cls, value: SecretStr | None) -> SecretStr | None:
        """Require the format of webhook secrets."""
        if value is None:
            return None
        try:
            raw = base64.b64decode(value.get_secret_value().removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) < MIN_SECRET_BYTES:
            what = f"is not a secret: `{SECRET_PREFIX}` and at least {MIN_SECRET_BYTES} bytes in Base64"
            raise reject(what, 'Make one with `echo "whsec_$(openssl rand -base64 24)"`.')
        return value

    @field_validator("words")
    @classmethod
    def check_words(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        """Require letters, digits and spaces: signs are not part of words."""
        for word in words:
            if not WORD.fullmatch(word):
                raise reject(
                    f"`{word[:80]}` is not a word or phrase", "Use letters and digits, or `patterns` for signs."
                )
        return words

    @field_validator("patterns")
    @classmethod
    def check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Require patterns whose time is linear."""
        for pattern in patterns:
            try:
                matches_empty = compile_pattern(pattern).isinstance_python("")
            except ValueError as error:
                remedy = "The syntax is that of Rust's `regex`: without look-around and back-references."
                raise reject(f"the pattern `{pattern[:80]}` cannot be used: {error}", remedy) from None
            if matches_empty:
                raise reject(
                    f"the pattern `{pattern[:80]}` matches every text", "Have it match at least one character."
                )
        return patterns

    @field_validator("reason")
    @classmethod
    def check_form(cls, value: str, info: ValidationInfo) -> str:
        """Require either a hook or a rule, and nothing that belongs to the other."""
        found = info.data
        if not {"url", "words", "patterns"} <= found.keys():
            return value  # one of them is wrong, and already reported
        is_rule = bool(found["words"] or found["patterns"])
        if is_rule is (found["url"] is not None):
            raise reject(
                "needs either `url` or `words` and `patterns`", "Keep one of the two, or make it two guardrails."
            )
        return value

    @field_validator(*OF_HOOKS, *OF_RULES)
    @classmethod
    def refuse_stranger(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject settings that have no effect, since they belong to the other form."""
        has_url = info.data.get("url") is not None
        if "url" in info.data and value not in ("", None) and (info.field_name in OF_RULES) is has_url:
            raise reject(f"has no effect on a {'hook' if has_url else 'rule'}", "Remove it.")
        return value
