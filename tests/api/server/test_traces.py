"""Traces as a collector gets them: from the caller's span to the request, the job, and every call to a vendor."""

import asyncio
import subprocess
import sys
from collections.abc import Generator

import openai
import pytest
from chat_steps import chatting
from conftest import VIDEO
from openai_double import KEY
from otlp_receiver import OtlpReceiver
from steps import NEVER, until

from penstock.observability import traces

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "shop=7"}
SERVER, CLIENT, CONSUMER = 2, 3, 5
CHAT = "POST /llm/chat/completions"
ORDER = "POST /model/v1/generation"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[OtlpReceiver]:
    """A collector that the environment names."""
    with OtlpReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield receiver


async def test_a_chat_request_and_the_call_to_its_vendor(collector, start):
    async with chatting(start) as chat:
        await chat.create("org/model-x", extra_headers=CALLER)
        request = await collector.find(CHAT)
        call = await collector.find("chat plain")
    assert (request.kind, request.trace, request.parent) == (SERVER, TRACE, "00f067aa0ba902b7")
    assert request.facts["http.request.method"] == "POST"
    assert request.facts["http.response.status_code"] == 200
    assert request.facts["http.route"] == "/llm/chat/completions"
    assert request.facts["penstock.request.id"].startswith("req_")
    assert request.resource["service.name"] == "penstock"
    assert (call.kind, call.trace, call.parent) == (CLIENT, TRACE, request.id)
    assert not call.is_error
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "upstream",
        "gen_ai.request.model": "plain",
        "gen_ai.request.stream": False,
        "gen_ai.response.model": "plain",
        "gen_ai.response.finish_reasons": ["stop"],
        "penstock.model": "org/model-x",
    }
    assert {name: call.facts.get(name) for name in expected} == expected
    assert call.facts["gen_ai.usage.input_tokens"] > 0
    assert call.facts["gen_ai.usage.output_tokens"] > 0


async def test_a_stream_is_traced_to_its_end(collector, start):
    async with chatting(start) as chat:
        await chat.collect("slow:0.05", extra_headers=CALLER)
        call = await collector.find("chat slow:0.05")
        request = await collector.find(CHAT)
    assert call.facts["gen_ai.request.stream"] is True
    assert call.facts["gen_ai.response.finish_reasons"] == ["stop"]
    assert call.facts["gen_ai.response.model"]
    assert call.facts["gen_ai.usage.output_tokens"] > 0
    assert 0 < call.facts["gen_ai.response.time_to_first_chunk"] < call.seconds
    assert call.parent == request.id
    assert request.seconds >= call.seconds >= 0.05


@pytest.mark.parametrize(
    ("scenario", "error", "is_told"), [("status:429", "limit", True), ("drop", "lost", True), ("cut", "", False)]
)
async def test_an_answer_that_fails(collector, start, scenario, error, is_told):
    async with chatting(start) as chat:
        with pytest.raises(openai.APIError):
            await chat.collect(scenario)
        call = await collector.find(f"chat {scenario}")
        request = await collector.find(CHAT)
    assert call.is_error
    assert call.facts["error.type"] == (error or "upstream_error")
    assert request.is_error is (is_told and request.facts["http.response.status_code"] >= 500)


async def test_every_route_that_is_tried_is_a_call(collector, start):
    routes = '[{vendor = "upstream", model = "status:503"}, {vendor = "upstream", model = "plain", order = 2}]'
    more = f'[[models]]\nid = "both"\nkind = "chat"\nroutes = {routes}\n'
    async with chatting(start, scenarios=(), price=more) as chat:
        await chat.create("both")
        first = await collector.find("chat status:503")
        second = await collector.find("chat plain")
    assert first.facts["error.type"] == "busy"
    assert first.parent == second.parent
    assert not second.is_error


async def test_a_job_from_its_request_to_its_vendor_and_back(collector, start):
    server = await start()
    script = {"latency": 0.05}
    body = {"model": VIDEO, "input": [{"params": {"script": script}}]}
    accepted = await server.client.post("/model/v1/generation", json=body, headers=CALLER)
    job = await server.finish(accepted.json()["id"])
    request = await collector.find(ORDER)
    work = await collector.find(f"generate_content {VIDEO}")
    calls = {verb: await collector.find(f"{verb} sim") for verb in ("submit", "poll", "download")}
    assert (request.trace, request.parent) == (TRACE, "00f067aa0ba902b7")
    assert (work.kind, work.trace, work.parent) == (CONSUMER, TRACE, request.id)
    assert work.facts["penstock.job.id"] == job["id"]
    assert work.facts["penstock.job.status"] == "succeeded"
    assert work.facts["gen_ai.operation.name"] == "generate_content"
    for verb, call in calls.items():
        assert (call.kind, call.trace, call.parent) == (CLIENT, TRACE, work.id), verb
        assert call.facts["gen_ai.provider.name"] == "sim"
        assert call.facts["penstock.verb"] == verb
    assert calls["submit"].facts["http.response.status_code"] < 300
    assert TRACE not in str(job)


async def test_a_job_that_fails(collector, start):
    server = await start()
    job = await server.generate(script={"ending": "failed"})
    work = await collector.find(f"generate_content {VIDEO}")
    assert work.is_error
    assert work.facts["error.type"] == job["error"]["code"]
    assert work.facts["penstock.job.status"] == "failed"


async def test_a_job_that_another_process_runs_later_goes_on_with_its_trace(collector, start, tmp_path):
    first = await start()
    job = await first.submit(script=NEVER)
    request = await collector.find(ORDER)
    await until(first.client, job["id"], phase="generating")
    await first.gateway.close()
    begun = await collector.find(f"generate_content {VIDEO}")
    second = await start(data=tmp_path / "data")
    await second.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    work = await collector.find(f"generate_content {VIDEO}", penstock_job_status="canceled")
    assert work.trace == begun.trace == request.trace
    assert work.parent == begun.parent == request.id
    assert work.facts["penstock.job.epoch"] > begun.facts["penstock.job.epoch"]


async def test_who_comes_without_a_trace_begins_one_and_probes_have_none(collector, start):
    server = await start()
    for path in ("/healthz", "/readyz", "/metrics", "/api/v1/models", "/nowhere"):
        await server.client.get(path, headers={"traceparent": "00-nonsense"})
    await collector.find("GET /api/v1/models")
    lost = await collector.find("GET", http_response_status_code=404)
    assert lost.parent == ""
    assert "http.route" not in lost.facts
    assert {span.name for span in collector.spans} == {"GET /api/v1/models", "GET"}
    assert len({span.trace for span in collector.spans}) == 2


async def test_no_prompt_and_no_secret_leaves(collector, start):
    said = "the-prompt-that-nobody-may-see"
    toml = '[vendors.sim]\ntype = "sim"\n[[models]]\nid = "sim_text_to_video"\nvendor = "sim"\n'
    async with chatting(start, toml=toml) as chat:
        messages = [{"role": "user", "content": said}]
        await chat.create("echo", messages=messages)
        await chat.collect("echo", messages=messages)
        with pytest.raises(openai.APIError):
            await chat.create("status:500", messages=messages)
        job = await chat.server.generate(prompt=said)
        await chat.server.client.get(job["outputs"][0]["url"], params={"secret-query": said})
        await collector.until(lambda spans: [span for span in spans if "download" in span.name])
        key, double = chat.key, chat.double
        sent = [name.lower() for request in double.requests for name in request.headers]
    assert "traceparent" not in sent  # vendors are not told
    whole = b"".join(collector.bodies)
    for secret in (said, KEY, key, "secret-query", double.url, "signature="):
        assert secret.encode() not in whole, secret


@pytest.mark.parametrize("status", [503, None])
async def test_a_collector_that_is_down_disturbs_nobody(collector, start, monkeypatch, caplog, status):
    if status is None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")  # discard: nobody listens
    else:
        collector.status = status
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
    async with chatting(start) as chat:
        answers = [await chat.create() for _ in range(40)]
        assert all(answer.choices for answer in answers)
        async with asyncio.timeout(60):
            while "trace collector does not answer" not in caplog.text:  # noqa: ASYNC110  a thread tells it
                await asyncio.sleep(0.02)
        await chat.server.gateway.close()  # without waiting for the collector
    told = [record.thread for record in caplog.records if "cannot be sent" in record.message]
    assert len(told) == len(set(told))  # once for each that sends


async def test_without_a_collector_there_is_nothing(server, monkeypatch):
    assert traces.tracer is None
    assert traces.current() is None
    with traces.call("vendor", "submit") as span:
        span.tell({"a": 1})
    assert span is traces.NOTHING


def test_nothing_is_loaded_that_is_not_wanted():
    code = (
        "import sys, penstock.gateway, penstock.web.app; from penstock.observability import traces\n"
        "traces.start({'OTEL_SDK_DISABLED': 'true', 'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'})\n"
        "print('opentelemetry.sdk' in sys.modules)\n"
        "traces.start({'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'})\n"
        "print('opentelemetry.sdk' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["False", "True"]


def test_a_missing_extra_is_told_and_breaks_nothing(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "penstock.observability.opentelemetry", raising=False)
    traces.start({traces.ENDPOINTS[0]: "http://127.0.0.1:9/v1/traces"})
    assert traces.tracer is None
    assert "extra `otel`" in caplog.text
