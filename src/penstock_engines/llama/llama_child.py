"""The process that holds the weights: llama.cpp's HTTP server on the loopback, for as long as the gateway lives."""

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from penstock_sandbox import sandbox

ASIDE = ("SIGINT", "SIGTERM", "SIGHUP")
"""What a terminal or a service manager sends to everyone at once. The gateway drains first; its pipe says when."""


def main() -> None:
    """Read the order, load, report the address, and end when the gateway closes the pipe or dies."""
    for name in ASIDE:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what native code prints must not pass for the report
    order = json.loads(sys.stdin.buffer.readline())
    sandbox.keep_privileges()  # it needs its socket, and reads nothing but text
    restrain(order["memory_mb"])
    library: Any = import_module("xllamacpp")  # so, because it carries no types
    server = library.Server(describe(order, library.CommonParams()))
    report.write(json.dumps({"address": server.listening_address}) + "\n")
    report.close()
    sys.stdin.buffer.read()
    os._exit(0)  # tidying up would wait for replies that nobody reads any more


def describe(order: dict[str, Any], params: Any) -> Any:
    """llama.cpp's own settings: what chat needs, and nothing else listening."""
    params.model.path = order["gguf"]
    params.model_alias = {order["alias"]}  # else replies would tell the path
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.api_keys = [order["key"]]
    params.n_parallel = order["slots"]
    params.n_ctx = order["context"] * order["slots"]  # it is divided among them
    for name, value in SETTINGS.items():
        setattr(params, name, value)
    for name, value in SAMPLING.items():
        setattr(params.sampling, name, value)
    return params


SETTINGS = {
    "hostnames": ["127.0.0.1"],
    "port": 0,
    "offline": True,
    "ui": False,
    "endpoint_slots": False,
    "cors_credentials": False,
    "kv_unified": False,  # one shared space, once full, ends everyone's replies
    "n_batch": 64,  # between two batches others get their turn, and a caller who left is noticed
    "n_ubatch": 64,
    "cache_ram_mib": 256,  # conversations beyond the slots; its own default is 8 GiB
    "n_predict": 1024,  # for requests that set no limit
    "prefill_assistant": False,  # a last message of the assistant's is answered, not continued
    "n_gpu_layers": 0,
    "fit_params": False,  # measures graphics memory
    "warmup": False,
}


SAMPLING = {"temp": 0.2, "penalty_repeat": 1.1}
"""For requests that do not say: small models ramble when hot, and without the penalty go round in circles."""


def restrain(memory_mb: int | None) -> None:
    """Stand back behind the gateway, leave no core file of conversations, and take no more than allowed."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not on Windows

    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb is not None:
        # Not RLIMIT_AS: that would count the mapped weights, and address space which is only reserved.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, memory_mb << 20))


if __name__ == "__main__":
    main()
