"""Build guardrails from the settings."""

from collections.abc import Collection, Iterable, Sequence

from penstock.domain.guardrails.rules import PatternRule, Rule, WordRule
from penstock.guardrails.guardrails import Guardrail
from penstock.guardrails.hook import HookOptions
from penstock.settings.guardrails import GuardrailTable
from penstock.settings.problems import Problem, SettingsError, Source, nearest


def build_guardrails(tables: Sequence[GuardrailTable], models: Collection[str], source: Source) -> list[Guardrail]:
    """Return a guardrail for each table. Raise `SettingsError` if one names a model that is not offered."""
    if problems := list(_find_unknown(tables, models, source)):
        raise SettingsError(problems)
    return [_build(table) for table in tables]


def _find_unknown(tables: Sequence[GuardrailTable], models: Collection[str], source: Source) -> Iterable[Problem]:
    for index, table in enumerate(tables):
        for model in table.models:
            if model not in models:
                where = source.locate(("guardrails", index, "models"))
                yield Problem(where, f"there is no model `{model}`", nearest(model, models))


def _build(table: GuardrailTable) -> Guardrail:
    rules: list[Rule] = []
    if table.words:
        rules.append(WordRule(table.words))
    if table.patterns:
        rules.append(PatternRule(table.patterns))
    secret = None if table.secret is None else table.secret.get_secret_value()
    hook = None if table.url is None else HookOptions(table.name, table.url, secret, table.timeout_seconds)
    return Guardrail(
        name=table.name,
        applies_to=frozenset(table.applies_to),
        models=frozenset(table.models),
        accounts=frozenset(table.accounts),
        rules=rules,
        refuses=table.action == "refuse",
        reason=table.reason,
        hook=hook,
        fails_open=table.on_failure == "allow",
    )
