"""A double of a sign-in provider that also does what a correct one never does: each answer is scripted by the test."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS

CLIENT, SECRET = "penstock", "a-client's-long-secret"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class SigningKey:
    """A key pair of the provider."""

    kid: str
    algorithm: str
    private: Any

    def jwk(self) -> dict[str, Any]:
        kinds = {"E": ECAlgorithm if self.algorithm != "EdDSA" else OKPAlgorithm}
        algorithm: Any = kinds.get(self.algorithm[0], RSAAlgorithm)
        return {**algorithm.to_jwk(self.private.public_key(), as_dict=True), "kid": self.kid, "use": "sig"}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        return PyJWS().encode(json.dumps(claims).encode(), self.private, self.algorithm, {"kid": self.kid, **header})


def make_key(kid: str, algorithm: str = "RS256") -> SigningKey:
    if algorithm == "ES256":
        return SigningKey(kid, algorithm, ec.generate_private_key(ec.SECP256R1()))
    if algorithm == "EdDSA":
        return SigningKey(kid, algorithm, ed25519.Ed25519PrivateKey.generate())
    return SigningKey(kid, algorithm, rsa.generate_private_key(public_exponent=65537, key_size=2048))


def sign_with_public_key(claims: Mapping[str, Any], key: SigningKey) -> str:
    """A token that a careless reader takes for genuine: its HMAC secret is the public key."""
    pem = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{encode(json.dumps({'alg': 'HS256', 'kid': key.kid}).encode())}.{encode(json.dumps(claims).encode())}"
    return f"{signed}.{encode(hmac.digest(pem, signed.encode(), 'sha256'))}"


def sign_not_at_all(claims: Mapping[str, Any], algorithm: str = "none") -> str:
    return f"{encode(json.dumps({'alg': algorithm}).encode())}.{encode(json.dumps(claims).encode())}."


@dataclass
class Grant:
    """A code, and what it is exchanged for."""

    query: Mapping[str, str]
    claims: Mapping[str, Any]
    token: str | None = None
    userinfo: Mapping[str, Any] | None = None


@dataclass
class OidcDouble:
    """A provider below a path of one server. Its clock is the one of the test."""

    origin: str
    path: str
    now: Any
    keys: list[SigningKey]
    metadata: dict[str, Any] = field(default_factory=dict)
    discovery: Any = None
    """Answers for the discovery document instead of it."""
    grants: dict[str, Grant] = field(default_factory=dict)
    infos: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuses_codes: bool = False

    @property
    def issuer(self) -> str:
        return f"{self.origin}{self.path}"

    def claims_for(self, query: Mapping[str, str], **changes: Any) -> dict[str, Any]:
        """Claims of a correct ID token; a change to None leaves a claim out."""
        now = int(self.now())
        usual = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "ada-1",
            "email": "ada@example.org",
            "email_verified": True,
            "name": "Ada",
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
            "sid": "sid-1",
        }
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    def grant(self, query: Mapping[str, str], *, token: str | None = None, userinfo: Any = None, **changes: Any) -> str:
        """A code for a person who has signed in."""
        code = secrets.token_urlsafe(12)
        self.grants[code] = Grant(query, self.claims_for(query, **changes), token, userinfo)
        return code

    def logout_token(self, **changes: Any) -> dict[str, Any]:
        now = int(self.now())
        usual = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "ada-1",
            "iat": now,
            "exp": now + 120,
            "jti": secrets.token_hex(8),
            "events": {EVENT: {}},
        }
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    # -- as a server

    def routes(self) -> list[web.RouteDef]:
        path = self.path
        return [
            web.get(f"{path}/.well-known/openid-configuration", self._discover),
            web.get(f"{path}/jwks", self._answer_keys),
            web.post(f"{path}/token", self._exchange),
            web.get(f"{path}/me", self._answer_info),
        ]

    async def _discover(self, request: web.Request) -> web.StreamResponse:
        self.requests.append("discovery")
        if self.discovery is not None:
            return await self.discovery(request)
        return web.json_response(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/auth",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "end_session_endpoint": f"{self.issuer}/end",
                **self.metadata,
            }
        )

    async def _answer_keys(self, _: web.Request) -> web.Response:
        self.requests.append("jwks")
        return web.json_response({"keys": [key.jwk() for key in self.keys]})

    async def _exchange(self, request: web.Request) -> web.Response:
        self.requests.append("token")
        form = dict(parse_qsl((await request.read()).decode()))
        given = request.headers.get("authorization", "")
        wanted = base64.b64encode(f"{CLIENT}:{SECRET.replace(chr(39), '%27')}".encode()).decode()
        grant = self.grants.pop(form.get("code", ""), None)
        if grant is None or given != f"Basic {wanted}" or self.refuses_codes:
            return web.json_response({"error": "invalid_grant"}, status=400)
        challenge = encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if challenge != grant.query["code_challenge"] or form["redirect_uri"] != grant.query["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token = secrets.token_urlsafe(8)
        if grant.userinfo is not None:
            self.infos[access_token] = grant.userinfo
        token = grant.token if grant.token is not None else self.keys[0].sign(grant.claims)
        return web.json_response({"access_token": access_token, "token_type": "Bearer", "id_token": token})

    async def _answer_info(self, request: web.Request) -> web.Response:
        self.requests.append("userinfo")
        return web.json_response(self.infos[request.headers["authorization"].removeprefix("Bearer ")])


class DoubleServer:
    """One server with several doubles."""

    def __init__(self, now: Any) -> None:
        self._now = now
        self._runner: web.AppRunner | None = None
        self.doubles: dict[str, OidcDouble] = {}

    async def start(self, *names: str) -> None:
        shared = make_key("key-1")
        self.doubles = {name: OidcDouble("", f"/{name}", self._now, [shared]) for name in names}
        app = web.Application()
        app.add_routes([route for double in self.doubles.values() for route in double.routes()])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        for double in self.doubles.values():
            double.origin = f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


async def answer_slowly(_: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError
