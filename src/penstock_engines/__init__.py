"""The built-in engines: 3D models, films and chat on this machine, with no vendor's account.

Only `vendors` knows the gateway. The rest can be used, tested and shipped without it.
"""
