"""What a vendor wrote is shown without our credentials and its addresses, in whatever form they stand there."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.upstream.redaction import Redactor, find_hosts

API_KEY = "vendor-secret-0123456789"
REDACTOR = Redactor({API_KEY, "key.io/a+b"}, {"vllm-7", "model", "gpu.cluster.example", "::1"})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("see https://api.vendor.example/v1?key=1 for more", "see … for more"),
        ("host api.vendor.ai:8443/x is busy", "host … is busy"),
        ("gs://bucket/key and s3://bucket/key", "… and …"),
        ("at 10.0.0.7:9000 or 127.0.0.1", "at … or …"),
        ("at [::1]:8000 or ::1", "at … or …"),
        ("wss://queue.vendor/x", "…"),
        (f"key {API_KEY} is bad", "key … is bad"),
        (f"key {API_KEY[:12]}******** is bad", "key … is bad"),
        ("key key.io/a+b is bad", "key … is bad"),
        ("header Bearer 0123456789abcdef is bad", "header … is bad"),
        ("another key, sk-proj-0123456789abcdef", "another key, …"),
        ("lookup VLLM-7:8000: no such host; try vllm-7", "lookup …: no such host; try …"),
        ("The model `x` does not exist", "The model `x` does not exist"),
        ("dial tcp: lookup model:8000", "dial tcp: lookup …"),
        ("a.gpu.cluster.example is down", "a.… is down"),
        ("not vllm-70 and not xvllm-7", "not vllm-70 and not xvllm-7"),
        ("the prompt was refused", "the prompt was refused"),
        ("x" * 500, "x" * 300),
    ],
)
def test_a_text_is_shown_without_addresses_and_secrets(text, clean):
    assert REDACTOR.text(text) == clean


@given(some.text(max_size=400), some.text(min_size=8, max_size=20), some.text(max_size=400))
def test_no_secret_gets_through_wherever_it_stands(before, secret, after):
    assert secret not in Redactor({secret}).text(f"{before}{secret}{after}")


@given(
    some.binary(max_size=9),
    some.text("abcdefghijklmnopqrstuvwxyz0123456789-_/+", min_size=12, max_size=60),
    some.binary(max_size=9),
)
def test_no_secret_gets_through_packed(before, secret, after):
    redactor = Redactor({secret})
    packed = before + secret.encode() + after
    for form in (base64.b64encode(packed), base64.urlsafe_b64encode(packed), quote(secret, safe="").encode()):
        shown = redactor.text(f"({form.decode()})")
        assert shown != f"({form.decode()})"
        if form != quote(secret, safe="").encode():
            left = shown.strip("()").replace("…", "")
            assert len(left) <= len(base64.b64encode(before)) + 8


def test_parts_of_a_document_are_secrets():
    account = {"type": "service_account", "private_key": "-----BEGIN\n0123456789abcdef", "project_id": "p"}
    redactor = Redactor({json.dumps(account)})
    assert redactor.text(f"not {account['private_key']}") == "not …"
    assert redactor.text("not a service_account of p") == "not a service_account of p"


@pytest.mark.parametrize("code", ["busy", "1261", "context_length_exceeded", "Throttling.RateQuota", "a:b"])
def test_a_code_stays(code):
    assert REDACTOR.code(code) == code


@pytest.mark.parametrize(
    "code", [None, 7, "", "a b", "x" * 65, API_KEY, API_KEY[:13], "10.0.0.7", "gpu.cluster.example", "a\n", "é"]
)
def test_no_code_is_null(code):
    assert REDACTOR.code(code) is None
    assert REDACTOR.upstream({"code": code, "message": None}) == {"code": None, "message": None}


@pytest.mark.parametrize("param", ["n", "messages[0].content", "messages.[1].role", "$.tools[0]", "body.a-b"])
def test_a_param_stays(param):
    assert REDACTOR.param(param) == param


@pytest.mark.parametrize("param", [None, ["n"], "", "a b", "x" * 129, f"messages.{API_KEY}", "http://vllm-7/"])
def test_no_param_is_null(param):
    assert REDACTOR.param(param) is None


def test_nothing_said_is_nothing_shown():
    assert REDACTOR.upstream(None) is None
    assert Redactor({""}).upstream({"code": "busy", "id": "x"}) == {"code": "busy", "id": "x"}


def test_hosts_are_found_in_settings_of_any_shape():
    settings = {
        "a": {"base_url": "http://user:pass%40@vllm-7:8000/v1"},
        "b": ["https://[::1]/", "no", 7],
        "c": "http://[",
    }
    assert sorted(find_hosts(settings)) == ["::1", "pass@", "user", "vllm-7"]
