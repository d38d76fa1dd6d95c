"""What clients of plain HTTP are given for TLS."""

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody. Without it httpx reads all the world's authorities for every client, in 40 ms."""
