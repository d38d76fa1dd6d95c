"""`[content_log]`: prompts and answers of accounts and keys that are switched on."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, field_validator

from penstock.domain.content.redaction import DEFAULT, compile_redaction
from penstock.settings.problems import reject
from penstock.settings.table import Table
from penstock.settings.values import DAY, Duration, split

MAX_PATTERNS: Final = 100
RedactionName = Literal["api_key", "bearer", "email", "iban", "card", "phone"]
Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(split)]


class ContentLogTable(Table):
    """`[content_log]`. Without a retention, no content is logged, whatever accounts and keys say."""

    retention: Annotated[Duration, Field(ge=0, le=3660 * DAY)] = Field(
        default=0.0, description="how long prompts and answers are kept, at most 3660d; 0: nothing is logged"
    )
    quota_mb: int = Field(
        default=256, ge=1, le=65536, description="how many MiB an account keeps; the oldest make room for new"
    )
    max_record_kb: int = Field(
        default=256, ge=1, le=4096, description="how many KiB of text a request and its answer may have each"
    )
    redact: Annotated[tuple[RedactionName, ...], BeforeValidator(split)] = Field(
        default=DEFAULT, description="what is redacted: api_key, bearer, email, iban, card, phone"
    )
    patterns: Patterns = Field(
        default=(),
        max_length=MAX_PATTERNS,
        description="regular expressions that are redacted besides, in the syntax of RE2",
    )
    export: Literal["off", "otlp"] = Field(
        default="off", description="otlp: send records to the collector of OpenTelemetry, too"
    )

    @field_validator("patterns")
    @classmethod
    def check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Require patterns whose time is linear."""
        for pattern in patterns:
            try:
                compile_redaction(pattern)
            except ValueError as error:
                remedy = "The syntax is that of RE2: without look-around and back-references."
                raise reject(f"the pattern `{pattern[:80]}` cannot be used: {error}", remedy) from None
        return patterns
