"""A real provider of OpenID Connect, `oidc-provider` from npm, in a process of its own."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from plain import NO_TLS

FOLDER = Path(__file__).parents[1] / "javascript"
CLIENT, SECRET = "penstock", "a-client's-long-secret"


@dataclass(frozen=True)
class OidcServer:
    """A running provider."""

    issuer: str

    def put_person(self, name: str, **claims: Any) -> None:
        """Set the claims of a person, who signs in by this name."""
        self._control(f"person/{name}", json.dumps(claims))

    def log_out(self, name: str, sid: str) -> None:
        """Have the provider tell the gateway that a person has left."""
        self._control(f"logout/{name}", sid)

    def _control(self, path: str, body: str) -> None:
        with httpx.Client(timeout=300, trust_env=False, verify=NO_TLS) as client:
            answer = client.post(f"{self.issuer}/control/{path}", content=body)
        assert answer.status_code == 200, answer.text


def find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def write_settings(port: int, name: str = "local-id") -> str:
    """Settings of a gateway for a provider at this port."""
    return (
        f'[sign_in.{name}]\ntitle = "Example ID"\nissuer = "http://127.0.0.1:{port}"\nclient_id = "{CLIENT}"\n'
        f'client_secret = "{SECRET}"\nscopes = ["openid", "email", "profile", "groups"]\n'
    )


@contextmanager
def serving(port: int, *urls: str, name: str = "local-id") -> Iterator[OidcServer]:
    """A provider for the gateways at these addresses, until the block ends. It tells the first one of logouts."""
    path = f"/api/v1/sign-in/{name}"
    backchannel, home = f"{urls[0]}{path}/backchannel-logout", f"{urls[0]}/console"
    redirects = [f"{url}{path}/callback" for url in urls]
    command = ["node", "oidc_server.mjs", str(port), CLIENT, SECRET, backchannel, home, *redirects]
    process = subprocess.Popen(  # noqa: S603
        command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield OidcServer(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.communicate()
