"""The process that holds the weights: llama.cpp's HTTP server on the loopback, ended with the gateway."""

from importlib import import_module
from typing import Any

from penstock_engines.serving.child_side import begin, wait_and_exit


def main() -> None:
    """Read the order, load, report the address, and end when the gateway closes the pipe or dies."""
    order, report_address = begin()
    library: Any = import_module("xllamacpp")  # imported this way, as it has no types
    server = library.Server(describe(order, library.CommonParams()))
    report_address(server.listening_address)
    wait_and_exit()


def describe(order: dict[str, Any], params: Any) -> Any:
    """Return llama.cpp's settings for chat, with nothing else listening."""
    params.model.path = order["gguf"]
    params.model_alias = {order["alias"]}  # else replies would show the path
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.api_keys = [order["key"]]
    params.n_parallel = order["slots"]
    params.n_ctx = order["context"] * order["slots"]  # llama.cpp divides it among the slots
    for name, value in SETTINGS.items():
        setattr(params, name, value)
    params.no_extra_bufts = not order["extra_buffers"]
    params.sampling.temp, params.sampling.penalty_repeat = TEMPERATURE, order["repeat_penalty"]
    return params


SETTINGS = {
    "hostnames": ["127.0.0.1"],
    "port": 0,
    "offline": True,
    "ui": False,
    "endpoint_slots": False,
    "cors_credentials": False,
    "kv_unified": False,  # one shared cache, once full, would end all replies
    "n_batch": 64,  # other requests get their turn between two batches, and a closed connection is noticed
    "n_ubatch": 64,
    "cache_ram_mib": 256,  # for conversations beyond the slots; the default is 8 GiB
    "n_predict": 1024,  # for requests that set no limit
    "prefill_assistant": False,  # answer a final assistant message instead of continuing it
    "n_gpu_layers": 0,
    "fit_params": False,  # measures graphics memory
    "warmup": False,
}


TEMPERATURE = 0.2
"""Default for requests, as small models ramble at a high temperature."""


if __name__ == "__main__":
    main()
