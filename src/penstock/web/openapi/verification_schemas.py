"""Schema of the report on a file's signature."""

from typing import Any, Literal

from pydantic import Field

from penstock.web.openapi.schemas import Shape


class SignerShape(Shape):
    """The certificate that signed a file."""

    name: str
    organization: str
    serial: str
    algorithm: str
    time: str | None = Field(description="by a time stamp authority, if there is one")


class ProblemShape(Shape):
    """One thing wrong with a signature, by its C2PA code."""

    code: str
    message: str


class ParentManifestShape(Shape):
    """An earlier manifest that the file carries, such as its vendor's."""

    title: str
    relationship: str
    signature: SignerShape | None
    generator: str


class VerificationRecord(Shape):
    """The origin of a file, as far as the file itself proves it."""

    object: Literal["verification"]
    verdict: Literal["signed_here", "signed_elsewhere", "unsigned", "tampered"]
    is_trusted: bool = Field(description="whether this server signed it, or a signer that its operator trusts")
    sha256: str
    bytes: int
    signer: SignerShape | None
    generator: str | None = Field(description="the program that wrote the manifest")
    made_by_ai: bool | None = Field(description="whether the manifest says so; null without one")
    generation: dict[str, Any] | None = Field(description="job, model, vendor, seed and inputs, if Penstock made it")
    problems: list[ProblemShape]
    parents: list[ParentManifestShape]
