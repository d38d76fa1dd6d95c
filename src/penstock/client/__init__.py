"""Python client of Penstock over HTTP. `Client` blocks, `AsyncClient` is awaited.

from penstock.client import Client

Client().generate("vendora_image_to_model", file="cat.png").wait().save("cat.glb")
"""

from typing import TYPE_CHECKING, Any

from penstock.client.errors import (
    ApiError,
    AuthenticationError,
    BadInput,
    BudgetError,
    ConflictError,
    ConnectionFailed,
    DownloadFailed,
    GoneError,
    InvalidRequestError,
    JobCanceled,
    JobExpired,
    JobFailed,
    LimitError,
    MissingExtra,
    NotFoundError,
    PenstockClientError,
    PermissionDeniedError,
    ServerError,
    UnexpectedAnswer,
    WaitTimeout,
)
from penstock.client.records import (
    Budget,
    Delivery,
    Event,
    FileRecord,
    JobRecord,
    Model,
    OutputRecord,
    Quote,
    Share,
    Usage,
    Webhook,
)

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient
    from penstock.client.async_job import AsyncBatch, AsyncJob, AsyncOutput
    from penstock.client.notebook import Live
    from penstock.client.sync_client import Client
    from penstock.client.sync_job import Batch, Job, Output

__all__ = [
    "ApiError",
    "AsyncBatch",
    "AsyncClient",
    "AsyncJob",
    "AsyncOutput",
    "AuthenticationError",
    "BadInput",
    "Batch",
    "Budget",
    "BudgetError",
    "Client",
    "ConflictError",
    "ConnectionFailed",
    "Delivery",
    "DownloadFailed",
    "Event",
    "FileRecord",
    "GoneError",
    "InvalidRequestError",
    "Job",
    "JobCanceled",
    "JobExpired",
    "JobFailed",
    "JobRecord",
    "LimitError",
    "Live",
    "MissingExtra",
    "Model",
    "NotFoundError",
    "Output",
    "OutputRecord",
    "PenstockClientError",
    "PermissionDeniedError",
    "Quote",
    "ServerError",
    "Share",
    "UnexpectedAnswer",
    "Usage",
    "WaitTimeout",
    "Webhook",
]

WHERE = {
    "Client": "sync_client",
    "Job": "sync_job",
    "Output": "sync_job",
    "Batch": "sync_job",
    "Live": "notebook",
    "AsyncClient": "async_client",
    "AsyncJob": "async_job",
    "AsyncOutput": "async_job",
    "AsyncBatch": "async_job",
}
"""Names that need the HTTP library. They are loaded on first use, because importing that library is slow."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only here

    return getattr(import_module(f"penstock.client.{WHERE[name]}"), name)
