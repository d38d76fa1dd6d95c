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
    PipelineFailed,
    ServerError,
    UnexpectedAnswer,
    WaitTimeout,
)
from penstock.client.pipelines.references import item, param, step
from penstock.client.records import (
    Budget,
    Delivery,
    Event,
    FileRecord,
    JobRecord,
    Lineage,
    Model,
    OutputRecord,
    PipelineQuote,
    PipelineRecord,
    Quote,
    Share,
    StepRecord,
    Template,
    Usage,
    Verification,
    Webhook,
)

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient
    from penstock.client.async_job import AsyncBatch, AsyncJob, AsyncOutput
    from penstock.client.notebook import Live
    from penstock.client.pipelines.async_pipeline import AsyncPipeline
    from penstock.client.pipelines.sync_pipeline import Pipeline
    from penstock.client.sync_client import Client
    from penstock.client.sync_job import Batch, Job, Output

__all__ = [
    "ApiError",
    "AsyncBatch",
    "AsyncClient",
    "AsyncJob",
    "AsyncOutput",
    "AsyncPipeline",
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
    "Lineage",
    "Live",
    "MissingExtra",
    "Model",
    "NotFoundError",
    "Output",
    "OutputRecord",
    "PenstockClientError",
    "PermissionDeniedError",
    "Pipeline",
    "PipelineFailed",
    "PipelineQuote",
    "PipelineRecord",
    "Quote",
    "ServerError",
    "Share",
    "StepRecord",
    "Template",
    "UnexpectedAnswer",
    "Usage",
    "Verification",
    "WaitTimeout",
    "Webhook",
    "item",
    "param",
    "step",
]

WHERE = {
    "Client": "sync_client",
    "Job": "sync_job",
    "Output": "sync_job",
    "Batch": "sync_job",
    "Pipeline": "pipelines.sync_pipeline",
    "Live": "notebook",
    "AsyncClient": "async_client",
    "AsyncJob": "async_job",
    "AsyncOutput": "async_job",
    "AsyncBatch": "async_job",
    "AsyncPipeline": "pipelines.async_pipeline",
}
"""Names that need the HTTP library. They are loaded on first use, because importing that library is slow."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only here

    return getattr(import_module(f"penstock.client.{WHERE[name]}"), name)
