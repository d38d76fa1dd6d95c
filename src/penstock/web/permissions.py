"""The table of endpoints and roles: it is enforced here, drawn into docs/roles.md, and tested cell by cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from penstock.domain.people.roles import PersonRole
from penstock.errors import RoleNotAllowed

Party: TypeAlias = PersonRole | Literal["operator", "service key"]
"""Who asks: a person by role, an operator, or a key that belongs to an account."""
OPERATOR: Final = "operator"
SERVICE: Final = "service key"
PARTIES: Final[tuple[Party, ...]] = (OPERATOR, *PersonRole, SERVICE)
OWNER, ADMIN, BILLING, MEMBER, VIEWER = PersonRole


@dataclass(frozen=True, slots=True)
class Permission:
    """Endpoints that are open to the same parties."""

    title: str
    parties: frozenset[Party] | None
    """None: anybody. The endpoint needs no key, or checks a signed link or a key of its own."""
    endpoints: tuple[str, ...]


def _of(*parties: Party) -> frozenset[Party]:
    return frozenset(parties)


PERMISSIONS: Final = (
    Permission(
        "Look at work",
        _of(OWNER, ADMIN, MEMBER, VIEWER, SERVICE),
        (
            "GET /api/v1/jobs",
            "GET /api/v1/jobs/{job_id}",
            "GET /model/v1/generation/{job_id}",
            "GET /api/v1/jobs/{job_id}/events",
            "GET /api/v1/jobs/{job_id}/lineage",
            "GET /api/v1/events",
            "GET /api/v1/files/tus/{upload_id}",
            "GET /api/v1/files/{token}",
            "GET /api/v1/files/{token}/content",
            "HEAD /api/v1/assets/{asset_id}/{filename}",
            "GET /api/v1/assets/{asset_id}/{filename}",
            "POST /api/v1/verify",
            "GET /api/v1/verify/certificate",
            "GET /api/v1/shares",
            "GET /api/v1/webhooks",
            "GET /api/v1/webhooks/{webhook_id}",
            "GET /api/v1/webhooks/deliveries",
            "GET /api/v1/webhooks/{webhook_id}/deliveries",
            "GET /api/v1/webhooks/deliveries/{delivery_id}",
            "GET /api/v1/webhooks/deliveries/{delivery_id}/message",
            "GET /api/v1/pipelines/templates",
            "GET /api/v1/pipelines/templates/{name}",
            "GET /api/v1/pipelines",
            "GET /api/v1/pipelines/{pipeline_id}",
            "GET /api/v1/pipelines/{pipeline_id}/events",
            "GET /api/v1/models",
            "GET /api/v1/models/{model_id:path}",
            "GET /v1/videos",
            "GET /v1/videos/{video_id}",
            "HEAD /v1/videos/{video_id}/content",
            "GET /v1/videos/{video_id}/content",
            "GET /replicate/v1/predictions",
            "GET /replicate/v1/predictions/{prediction_id}",
            "GET /replicate/v1/predictions/{prediction_id}/stream",
            "GET /replicate/v1/files",
            "GET /replicate/v1/files/{file_id}",
            "GET /replicate/v1/files/{file_id}/download",
            "GET /replicate/v1/models",
            "GET /replicate/v1/models/{owner}/{name:path}",
            "GET /replicate/v1/models/{owner}/{name:path}/versions",
            "GET /replicate/v1/models/{owner}/{name:path}/versions/{version_id}",
            "GET /replicate/v1/account",
            "GET /replicate/v1/hardware",
            "GET /fal/queue/{app_id:path}/requests/{request_id}/status/stream",
            "GET /fal/queue/{app_id:path}/requests/{request_id}/status",
            "GET /fal/queue/{app_id:path}/requests/{request_id}",
        ),
    ),
    Permission(
        "Generate, upload and share",
        _of(OWNER, ADMIN, MEMBER, SERVICE),
        (
            "POST /api/v1/{model_id:path}/generate",
            "POST /model/v1/generation",
            "POST /api/v1/jobs/{job_id}/cancel",
            "POST /model/v1/generation/{job_id}/cancel",
            "DELETE /api/v1/jobs/{job_id}",
            "POST /api/v1/files",
            "DELETE /api/v1/files/{token}",
            "POST /api/v1/files/tus",
            "HEAD /api/v1/files/tus/{upload_id}",
            "PATCH /api/v1/files/tus/{upload_id}",
            "DELETE /api/v1/files/tus/{upload_id}",
            "POST /api/v1/jobs/{job_id}/shares",
            "DELETE /api/v1/shares/{share_id}",
            "PUT /api/v1/pipelines/templates/{name}",
            "DELETE /api/v1/pipelines/templates/{name}",
            "POST /api/v1/pipelines",
            "POST /api/v1/pipelines/{pipeline_id}/retry",
            "POST /api/v1/pipelines/{pipeline_id}/cancel",
            "DELETE /api/v1/pipelines/{pipeline_id}",
            "POST /v1/images/generations",
            "POST /v1/images/edits",
            "POST /v1/images/variations",
            "POST /v1/videos",
            "POST /v1/videos/edits",
            "POST /v1/videos/extensions",
            "POST /v1/videos/{video_id}/remix",
            "DELETE /v1/videos/{video_id}",
            "POST /replicate/v1/predictions",
            "POST /replicate/v1/models/{owner}/{name:path}/predictions",
            "POST /replicate/v1/deployments/{owner}/{name:path}/predictions",
            "POST /replicate/v1/predictions/{prediction_id}/cancel",
            "POST /replicate/v1/files",
            "DELETE /replicate/v1/files/{file_id}",
            "GET /fal/proxy",
            "POST /fal/proxy",
            "PUT /fal/proxy",
            "PUT /fal/queue/{app_id:path}/requests/{request_id}/cancel",
            "POST /fal/queue/{app_id:path}",
            "POST /fal/run/{app_id:path}",
            "POST /mcp",
            "GET /mcp",
        ),
    ),
    Permission(
        "Chat",
        _of(OWNER, ADMIN, MEMBER, SERVICE),
        (
            "POST /llm/chat/completions",
            "POST /llm/embeddings",
            "POST /llm/audio/speech",
            "POST /llm/audio/transcriptions",
            "POST /v1/responses",
            "POST /v1/messages",
            "POST /v1/messages/count_tokens",
            "GET /llm/models",
            "HEAD /llm/models",
            "GET /v1/models",
            "HEAD /v1/models",
            "GET /llm/models/{model_id:path}",
            "HEAD /llm/models/{model_id:path}",
            "GET /v1/models/{model_id:path}",
            "HEAD /v1/models/{model_id:path}",
            *(
                f"{rest} {base}/responses/{{response_id}}{after}"
                for base in ("/v1", "/llm/v1", "/llm")
                for rest, after in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items"))
            ),
        ),
    ),
    Permission(
        "Manage webhooks",
        _of(OWNER, ADMIN, SERVICE),
        (
            "POST /api/v1/webhooks",
            "PATCH /api/v1/webhooks/{webhook_id}",
            "DELETE /api/v1/webhooks/{webhook_id}",
            "POST /api/v1/webhooks/{webhook_id}/rotate",
            "POST /api/v1/webhooks/{webhook_id}/ping",
            "GET /api/v1/webhooks/secret",
            "POST /api/v1/webhooks/secret/rotate",
            "POST /api/v1/webhooks/deliveries/{delivery_id}/redeliver",
            "GET /replicate/v1/webhooks/default/secret",
        ),
    ),
    Permission(
        "Sign in and out, and see and end one's own sessions",
        None,
        (
            "GET /api/v1/sign-in",
            "GET /api/v1/sign-in/{provider}",
            "GET /api/v1/sign-in/{provider}/callback",
            "POST /api/v1/sign-in/{provider}/backchannel-logout",
            "GET /api/v1/session",
            "DELETE /api/v1/session",
            "GET /api/v1/sessions",
            "DELETE /api/v1/sessions",
            "DELETE /api/v1/sessions/{session_id}",
        ),
    ),
    Permission("See usage and cost", _of(OWNER, ADMIN, BILLING, MEMBER, VIEWER, SERVICE), ("GET /api/v1/usage",)),
    Permission("See one's own role", _of(OWNER, ADMIN, BILLING, MEMBER, VIEWER), ("GET /api/v1/person",)),
    Permission(
        "Manage one's own keys",
        _of(OWNER, ADMIN, MEMBER),
        (
            "GET /api/v1/keys",
            "POST /api/v1/keys",
            "POST /api/v1/keys/{public_id}/rotate",
            "DELETE /api/v1/keys/{public_id}",
        ),
    ),
    Permission(
        "See all keys of the account and their limits",
        _of(OWNER, ADMIN, BILLING),
        ("GET /api/v1/account/keys", "GET /api/v1/account/key-policy"),
    ),
    Permission("Set limits for people's keys", _of(OWNER, ADMIN, BILLING), ("PUT /api/v1/account/key-policy",)),
    Permission(
        "Manage people and all keys of the account",
        _of(OWNER, ADMIN),
        (
            "GET /api/v1/people",
            "POST /api/v1/people",
            "PATCH /api/v1/people/{person}",
            "DELETE /api/v1/people/{person}",
            "POST /api/v1/account/keys",
            "POST /api/v1/account/keys/{public_id}/rotate",
            "DELETE /api/v1/account/keys/{public_id}",
        ),
    ),
    Permission(
        "Read and delete the content log",
        _of(OWNER, ADMIN),
        (
            "GET /api/v1/content",
            "DELETE /api/v1/content",
            "GET /api/v1/content/{content_id}",
            "DELETE /api/v1/content/{content_id}",
        ),
    ),
    Permission(
        "Administer the server",
        _of(OPERATOR),
        (
            "POST /admin/v1/accounts",
            "GET /admin/v1/accounts",
            "GET /admin/v1/accounts/{account_id}",
            "PATCH /admin/v1/accounts/{account_id}",
            "PUT /admin/v1/accounts/{account_id}/budgets/{period}",
            "DELETE /admin/v1/accounts/{account_id}/budgets/{period}",
            "GET /admin/v1/accounts/{account_id}/tag-budgets",
            "PUT /admin/v1/accounts/{account_id}/tag-budgets",
            "DELETE /admin/v1/accounts/{account_id}/tag-budgets",
            "POST /admin/v1/keys",
            "GET /admin/v1/keys",
            "GET /admin/v1/keys/{public_id}",
            "PATCH /admin/v1/keys/{public_id}",
            "DELETE /admin/v1/keys/{public_id}",
            "POST /admin/v1/keys/{public_id}/revoke",
            "POST /admin/v1/keys/{public_id}/rotate",
            "PUT /admin/v1/keys/{public_id}/budgets/{period}",
            "DELETE /admin/v1/keys/{public_id}/budgets/{period}",
            "GET /admin/v1/people",
            "POST /admin/v1/people",
            "GET /admin/v1/people/{person}",
            "PATCH /admin/v1/people/{person}",
            "PUT /admin/v1/people/{person}/accounts/{account}",
            "DELETE /admin/v1/people/{person}/accounts/{account}",
            "GET /admin/v1/people/{person}/sessions",
            "DELETE /admin/v1/people/{person}/sessions",
            "DELETE /admin/v1/people/{person}/sessions/{session_id}",
            "GET /admin/v1/ledger",
            "POST /admin/v1/ledger/{subject}/refund",
            "POST /admin/v1/ledger/{subject}/release",
            "POST /admin/v1/ledger/{subject}/settle",
            "GET /admin/v1/usage",
            "GET /admin/v1/vendors",
            "GET /admin/v1/prices",
            "POST /admin/v1/prices/preview",
            "POST /admin/v1/prices",
            "DELETE /admin/v1/prices/{price_id}",
            "GET /admin/v1/audit",
            "GET /admin/v1/settings",
            "GET /admin/v1/settings/vendor-types",
            "PATCH /admin/v1/settings",
            "PUT /admin/v1/settings",
            "POST /admin/v1/settings/vendors/{name}/test",
            "GET /admin/v1/settings/versions",
            "GET /admin/v1/settings/versions/{version}",
            "POST /admin/v1/settings/versions/{version}/restore",
        ),
    ),
    Permission(
        "Open to all, or by a signed link or a key of its own",
        None,
        (
            "GET /api/v1/key",
            "OPTIONS /api/v1/files/tus",
            "GET /share/{token}",
            "HEAD /share/{token}",
            "GET /share/{token}/{filename}",
            "HEAD /share/{token}/{filename}",
            "PUT /fal/files/{token}/{filename}",
            "GET /fal/files/{token}/{filename}",
            "PUT /fal/files/{token}/{filename}/parts/{upload_id}/{number:int}",
            "POST /fal/files/{token}/{filename}/parts/{upload_id}/complete",
            "POST /vendor/v1/{vendor}/{reference}/{tag}",
            "GET /healthz",
            "HEAD /healthz",
            "GET /readyz",
            "HEAD /readyz",
            "GET /metrics",
            "GET /openapi.json",
            "GET /docs",
            "GET /",
            "GET /console",
            "HEAD /console",
            "GET /console/{path:path}",
            "HEAD /console/{path:path}",
        ),
    ),
)

TABLE: Final[Mapping[str, frozenset[Party] | None]] = {
    endpoint: permission.parties for permission in PERMISSIONS for endpoint in permission.endpoints
}
"""By method and path of the route, the parties that may call it; None for anybody."""


def endpoints_of(party: Party) -> list[str]:
    """Return the endpoints that a party may call, apart from those open to all."""
    return [endpoint for endpoint, parties in TABLE.items() if parties is not None and party in parties]


def require(party: Party, method: str, route: Any) -> None:
    """Raise unless this party may call the route with this method. A route without a row is refused."""
    endpoint = f"{method} {route.path}"
    allowed = TABLE.get(endpoint, frozenset())
    if allowed is None or party in allowed:
        return
    roles = [role for role in PersonRole if role in allowed]
    needed = f"It needs the role {' or '.join(f'`{role}`' for role in roles)}" if roles else "No role allows it"
    whose = "A key of an account may not do this" if party == SERVICE else f"Your role `{party}` does not allow this"
    raise RoleNotAllowed(f"{whose}. {needed}.")
