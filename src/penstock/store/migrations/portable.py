"""SQL in which SQLite and PostgreSQL differ, for migrations."""

from contextlib import AbstractContextManager
from typing import Any, Final

from alembic import op
from alembic.operations import BatchOperations
from sqlalchemy import BigInteger, Integer, String, text

Word: Final = String().with_variant(String(collation="C"), "postgresql")
Position: Final = BigInteger().with_variant(Integer, "sqlite")


def is_postgres() -> bool:
    """Return whether the store is on PostgreSQL."""
    return op.get_bind().dialect.name == "postgresql"


def where(condition: str) -> dict[str, Any]:
    """Return the options of a partial index with this condition."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def change(table: str) -> AbstractContextManager[BatchOperations]:
    """Change the columns of a table. SQLite rewrites it, as new columns would otherwise follow the constraints."""
    return op.batch_alter_table(table, recreate="never" if is_postgres() else "always")


def after(column: str) -> dict[str, Any]:
    """Return the option that places a new column after another. PostgreSQL always puts it last."""
    return {} if is_postgres() else {"insert_after": column}


def of_document(name: str, kind: str = "text") -> str:
    """Return an expression for a field of a job's JSON: a text, a number or a flag."""
    if not is_postgres():
        return f"json_extract(CAST(document AS TEXT), '$.{name}')"
    field = rf"(replace(convert_from(document, 'UTF8'), '\u0000', '\ufffd')::jsonb ->> '{name}')"  # it knows no NUL
    return {"text": field, "number": f"CAST({field} AS BIGINT)", "flag": f"({field} = 'true')"}[kind]


def day_of(moment: str) -> str:
    """Return an expression for the UTC day of a moment, counted from 1970-01-01."""
    return f"CAST({f'floor({moment} / 86400)' if is_postgres() else f'{moment} / 86400'} AS INTEGER)"
