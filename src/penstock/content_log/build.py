"""Build the policy of the content log from the settings."""

from functools import cache, partial

from penstock.domain.content.records import ContentPolicy
from penstock.domain.content.redaction import ContentRedactor
from penstock.settings.content_log import ContentLogTable


def make_content_policy(table: ContentLogTable) -> ContentPolicy:
    """Return the policy that a table asks for. Its patterns are compiled at first use, once."""
    return ContentPolicy(
        retention_seconds=table.retention,
        quota_bytes=table.quota_mb << 20,
        max_characters=table.max_record_kb << 10,
        redactor=partial(_make_redactor, table.redact, table.patterns),
        is_exported=table.export == "otlp",
    )


@cache
def _make_redactor(names: tuple[str, ...], patterns: tuple[str, ...]) -> ContentRedactor:
    return ContentRedactor(names, patterns)
