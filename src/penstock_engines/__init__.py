"""The built-in engines: 3D models, films, chat and embeddings on this machine, without an account at a vendor.

- `inflate` makes 3D models of pictures, `cinema` makes films of prompts.
- `studio` runs both, each order in a confined child process.
- `llama` is the chat server and `minilm` the embedding server. `serving` runs both, each in a child process.
- `weights` pulls and checks the files of the neural networks.
- `vendors` connects the engines to the gateway, and is the only part that imports it.
"""
