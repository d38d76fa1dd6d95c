"""The official OpenAI SDK on this server: an extra, loaded when it is asked for."""

from types import ModuleType
from typing import Any

from penstock.client.config import Address
from penstock.client.errors import MissingExtra


def load_sdk() -> Any:
    """The SDK's module; a clear word where it is not installed."""
    try:
        import openai  # noqa: PLC0415  an extra, and slow to load
    except ImportError:
        raise MissingExtra("The OpenAI SDK is not installed: pip install 'penstock[openai]'.") from None
    module: ModuleType = openai
    return module


def sdk_arguments(address: Address) -> dict[str, Any]:
    """What its clients are made with."""
    return {"base_url": f"{address.base_url}/llm", "api_key": address.api_key}
