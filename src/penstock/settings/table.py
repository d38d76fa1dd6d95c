"""The base of all tables of the settings."""

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator


class Table(BaseModel):
    """One table of the file: unknown keys are rejected, and values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def refuse_boolean(cls, value: Any) -> Any:
        """Reject booleans: no setting is one, and Pydantic would read `true` as the number 1."""
        if isinstance(value, bool):
            raise ValueError("should not be true or false")
        return value
