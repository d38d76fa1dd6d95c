"""Webhooks' rules: signatures that the official library believes, pauses, ids, and receivers' wishes."""

import base64
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from standardwebhooks import Webhook, WebhookVerificationError

from penstock.domain.webhooks import (
    MAX_SECRETS,
    OVERLAP_SECONDS,
    RETRY_SECONDS,
    Endpoint,
    delivery_id,
    host_of,
    new_secret,
    next_pause,
    parse_delivery_id,
    sign,
)
from penstock.webhooks.delivery import read_retry_after

NOW = 1_700_000_000.0
POSITIONS = some.integers(0, 2**63 - 1)


def make_endpoint(**fields: Any) -> Endpoint:
    defaults = {"id": "hook_1", "account_id": "acct_1", "url": "https://example.com/", "events": (), "description": ""}
    return Endpoint(**(defaults | {"base_url": "", "secret": "whsec_bmV3", "created_at": NOW} | fields))


@given(some.text(), some.integers(1, 3))
def test_the_official_library_believes_each_secret_and_no_other(text, count):
    secrets, body, moment = [new_secret() for _ in range(count)], text.encode(), int(datetime.now(UTC).timestamp())
    signature = sign(secrets, "evt_1", moment, body)
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(moment), "webhook-signature": signature}
    for secret in secrets:
        Webhook(secret).verify(body, headers, json_parse=False)
    for wrong in (headers | {"webhook-id": "evt_2"}, headers | {"webhook-timestamp": str(moment - 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(secrets[0]).verify(body, wrong, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(body, headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(secrets[0]).verify(body + b" ", headers, json_parse=False)


def test_a_secret_is_as_the_standard_wants_it():
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert secret.startswith("whsec_")
        assert 24 <= len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) <= 64


def test_the_former_secret_signs_until_its_time_is_over():
    endpoint = make_endpoint(former_secret="whsec_b2xk", former_until=NOW)
    assert endpoint.secrets_at(NOW - 1) == ["whsec_bmV3", "whsec_b2xk"]
    assert endpoint.secrets_at(NOW) == ["whsec_bmV3"]
    assert make_endpoint().secrets_at(NOW) == ["whsec_bmV3"]


@given(some.lists(some.floats(0, 30 * 3600), max_size=12))
def test_every_secret_counts_for_as_long_as_was_promised(pauses):
    """However often it is rotated meanwhile, as long as there is room for it."""
    endpoint, now, promised = make_endpoint(), NOW, {}
    for pause in pauses:
        now += pause
        promised[endpoint.secret] = now + OVERLAP_SECONDS
        endpoint = endpoint.rotate(now)
        counting = [secret for secret in reversed(promised) if now < promised[secret]]
        assert endpoint.secrets_at(now) == [endpoint.secret, *counting][:MAX_SECRETS]


@given(some.integers(1, 20), some.none() | some.floats(0, 1e9))
def test_pauses_are_never_shorter_than_planned_and_end(tries, wish):
    pause = next_pause(tries, wish)
    if tries > len(RETRY_SECONDS):
        assert pause is None
    else:
        planned = RETRY_SECONDS[tries - 1]
        assert max(planned, min(wish or 0, 86_400)) <= pause <= max(planned * 1.2, min(wish or 0, 86_400))


@given(POSITIONS)
def test_ids_of_deliveries_are_read_back(position):
    assert parse_delivery_id(delivery_id(position)) == position


@given(some.lists(POSITIONS, min_size=2, max_size=2))
def test_ids_of_deliveries_sort_as_positions_do(positions):
    assert sorted(map(delivery_id, positions)) == [delivery_id(each) for each in sorted(positions)]


@given(some.text())
def test_what_is_no_id_is_none(text):
    found = parse_delivery_id(text)
    assert found is None or delivery_id(found) == text.lower()


@given(some.text())
def test_no_retry_after_breaks_anything(text):
    seconds = read_retry_after(text, NOW)
    assert seconds is None or seconds >= 0


def test_retry_after_is_seconds_or_a_date():
    assert read_retry_after(" 90 ", NOW) == 90
    assert read_retry_after(format_datetime(datetime.fromtimestamp(NOW + 60, UTC), usegmt=True), NOW) == 60
    assert read_retry_after(format_datetime(datetime.fromtimestamp(NOW - 60, UTC), usegmt=True), NOW) == 0
    assert read_retry_after("-5", NOW) is None
    assert read_retry_after("tomorrow", NOW) is None


def test_a_host_is_a_name_and_a_port():
    assert host_of("https://example.com/a?b#c") == "example.com"
    assert host_of("http://example.com:8080/") == "example.com:8080"
