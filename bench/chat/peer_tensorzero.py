"""TensorZero's HTTP gateway, started as its Python package does it for a patched OpenAI client.

python -m bench.chat.peer_tensorzero CONFIG

Run by the Python of bench/.cache/tensorzero. It prints where the gateway listens; Python then only waits, and every
request is answered by the Rust behind it.
"""

import signal
import sys
import warnings

import openai
import tensorzero

warnings.simplefilter("ignore")
client = openai.OpenAI(api_key="sk-bench")
tensorzero.patch_openai_client(client, config_file=sys.argv[1], async_setup=False)
print(f"listening on {client.base_url.port} {client.base_url.path.rstrip('/')}", flush=True)
signal.pause()
