"""What the client does when something goes wrong: retries as the server says, resumes, and errors that tell."""

import gc
import hashlib
import io
import math
import os
import shutil
import threading
import traceback

import pytest
from flaky_front import Answer, Cut, Lose, Spoil, fronting
from ports import free_port
from stage import staged

from penstock.client import (
    ApiError,
    AuthenticationError,
    BadInput,
    BudgetError,
    Client,
    ConnectionFailed,
    DownloadFailed,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    PermissionDeniedError,
    ServerError,
    UnexpectedAnswer,
    WaitTimeout,
)
from penstock.client.downloads import load
from penstock.client.records import OutputRecord
from penstock.client.transport.retries import Policy, requested_pause, send
from penstock.client.transport.steps import Close, Open, Pause, Read, Reply, Request, Send, Work

VIDEO = "sim_text_to_video"
QUICK = {"latency": 0.05}
BUSY = b'{"error": {"message": "Busy.", "code": "overloaded", "param": null, "retryable": true}}'


# -- errors that tell


def test_every_family_of_errors_is_a_class_of_its_own(stage, client):
    with pytest.raises(InvalidRequestError) as caught:
        client.generate(VIDEO, promt="x", durationSeconds=99)
    error = caught.value
    assert {detail.loc for detail in error.details} == {"input.0.params.promt", "input.0.params.durationSeconds"}
    assert (error.status, error.retryable, error.param) == (400, False, error.details[0].loc)
    assert error.request_id.startswith("req_")
    assert error.request_id in str(error)
    with pytest.raises(NotFoundError) as missing:
        client.job("job_nothing")
    assert missing.value.code == "job_not_found"
    with Client(stage.url, stage.key(models=("vendorb_video_31",))) as other, pytest.raises(PermissionDeniedError):
        other.generate(VIDEO)
    with Client(stage.url, stage.key(concurrent_jobs=1), retries=0) as other:
        job = other.generate(VIDEO, script={"latency": 30})
        with pytest.raises(LimitError) as limited:
            other.generate(VIDEO)
        job.cancel()
    assert limited.value.retry_after > 0


def test_a_budget_that_does_not_suffice_is_told_with_where_it_stands(stage):
    with Client(stage.url, stage.key(budgets={"total": "0.50"})) as client:
        client.generate("vendorb_video_31", prompt="A boat", durationSeconds=4).wait()
        with pytest.raises(BudgetError) as caught:
            client.generate("vendorb_video_31", prompt="A boat", durationSeconds=4)
    error = caught.value
    assert (error.code, error.fields["spent"], error.fields["cap"]) == ("insufficient_budget", "0.30", "0.50")


def test_a_key_is_never_shown(stage):
    secret = "psk_5h989ejrceh2wnrsx8_thisisverysecret0000000000000000000000000000"
    with Client(stage.url, secret) as client, pytest.raises(AuthenticationError) as caught:
        client.models()
    shown = "".join(traceback.format_exception(caught.value)) + repr(client) + repr(vars(caught.value))
    assert "verysecret" not in shown
    for wrong in (f"{secret}\nx: y", f"{secret} {secret}", f"{secret}é"):
        with pytest.raises(BadInput) as refused:
            Client(stage.url, wrong)
        assert "verysecret" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:8787", "ftp://x", "http://me:secret@host", "http://", "http://x:99999", "http://x#y", "http://a..b"],
)
def test_an_address_that_is_none_is_refused_at_once(address):
    with pytest.raises(BadInput, match="address"):
        Client(address, "psk_x")


def test_without_a_key_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv("PENSTOCK_API_KEY", raising=False)
    with pytest.raises(BadInput, match="PENSTOCK_API_KEY"):
        Client("http://127.0.0.1:1")


def test_nobody_there_is_told_after_the_retries():
    with (
        Client(f"http://127.0.0.1:{free_port()}", "psk_x", retries=1) as client,
        pytest.raises(ConnectionFailed, match="No connection") as caught,
    ):
        client.models()
    assert not caught.value.sent


def test_waiting_ends_in_time_whether_or_not_the_server_answers(stage, key, client):
    with fronting(stage.url) as front:
        away = Client(front.url, key)
        job = away.generate(VIDEO, script={"latency": 60})
    with away, pytest.raises(WaitTimeout, match="continues"):
        job.wait(0.3)
    client.cancel(job.id)


def test_who_forgets_to_close_leaves_no_connection_behind(stage, key):
    client = Client(stage.url, key)
    events = client.generate(VIDEO, script=QUICK).events()
    next(events)
    del client, events
    gc.collect()  # a socket that is left open would warn, and warnings are errors


@pytest.mark.parametrize(
    "given", [{"prompt": {1, 2}}, {"durationSeconds": math.nan}, {"prompt": "\ud800"}, {"idempotency_key": "a\nb"}]
)
def test_what_cannot_be_sent_is_told_at_once(fronted, front, given):
    with pytest.raises(BadInput):
        fronted.generate(VIDEO, **given)
    assert front.seen == []


def test_an_id_is_one_step_of_a_path(fronted, front):
    for ask in (fronted.job, fronted.cancel, fronted.delete_job, fronted.file, fronted.webhooks.get):
        with pytest.raises(NotFoundError):
            ask("../jobs?x#y")
    assert all(seen.path.count("..%2Fjobs%3Fx%23y") == 1 for seen in front.seen)


def test_answers_of_other_servers_are_told_as_such(front, fronted):
    odd = [b"<html>", b"7", b"[]", b"{}", b'{"data": [7]}']
    front.upset("GET /api/v1/models", *(Answer(200, {}, body) for body in odd), Answer(404))
    for _ in odd:
        with pytest.raises(UnexpectedAnswer, match="Penstock's address"):
            fronted.models()
    front.upset("GET /api/v1/jobs/", *(Answer(200, {}, body) for body in odd[:3]))
    for _ in odd[:3]:
        with pytest.raises(UnexpectedAnswer, match="Penstock's address"):
            fronted.job("job_1")
    with pytest.raises(NotFoundError, match="status 404"):
        fronted.models()
    front.upset("GET /api/v1/models", Answer(301, {"location": "https://elsewhere.example/"}))
    with pytest.raises(UnexpectedAnswer, match="redirects to https://elsewhere"):
        fronted.models()


# -- trying again


def drive(flow, *came: object):
    """The pauses and the number of calls of a flow that is answered so, and what it comes to."""
    pauses, calls, answers = [], 0, list(came)
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = flow.send(None)
                continue
            assert isinstance(step, Send)
            calls += 1
            answer = answers.pop(0)
            step = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    except StopIteration as end:
        return pauses, calls, end.value
    except (ApiError, ConnectionFailed) as error:
        return pauses, calls, error


GET = Request(method="GET", path="/")
POST = Request(method="POST", path="/")
KEYED = Request(method="POST", path="/", repeatable=True)
OK = Reply(200, {})
CUT = ConnectionFailed("cut", sent=True)
AWAY = ConnectionFailed("away", sent=False)


@pytest.mark.parametrize(
    ("request_", "came", "calls"),
    [
        (GET, [CUT, OK], 2),
        (KEYED, [CUT, CUT, OK], 3),
        (POST, [AWAY, OK], 2),
        (POST, [CUT], 1),
        (POST, [Reply(500, {"x-should-retry": "true"})], 1),
        (POST, [Reply(429, {"x-should-retry": "true"}), OK], 2),
        (KEYED, [Reply(500, {}), OK], 2),
        (KEYED, [Reply(503, {"x-should-retry": "false"})], 1),
        (GET, [Reply(503, {}, b'{"error": {"retryable": false}}')], 1),
        (GET, [Reply(409, {}, b'{"error": {"retryable": true}}'), OK], 2),
        (GET, [Reply(404, {})], 1),
        (GET, [Reply(429, {"retry-after": "61"})], 1),
        (GET, [Reply(503, {})] * 5, 5),
    ],
)
def test_it_tries_again_only_where_that_can_help_and_does_no_harm(request_, came, calls):
    _, made, result = drive(send(request_, Policy(retries=4)), *came)
    assert made == calls
    assert (result == OK) == (came[-1] == OK)


def test_it_waits_as_long_as_the_server_asks():
    asked = Reply(429, {"retry-after": "7", "retry-after-ms": "6500"}), Reply(503, {"retry-after": "2"}), OK
    assert drive(send(GET, Policy()), *asked)[0] == [6.5, 2.0]
    guessed, _, _ = drive(send(GET, Policy(retries=9)), *[CUT] * 9, OK)
    assert guessed[0] < 0.3
    assert max(guessed) <= 8
    assert requested_pause({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert requested_pause({"retry-after": "soon"}) is None


def test_a_server_that_is_busy_for_a_while_is_asked_again(front, fronted):
    soon = {"retry-after-ms": "50"}
    front.upset("GET /api/v1/models", Answer(503, soon, BUSY), Answer(429, soon, BUSY), Answer(502, soon), Lose())
    assert fronted.models()
    assert len(front.of("/api/v1/models")) == 5
    front.upset("GET /api/v1/models", Answer(503, soon | {"x-should-retry": "false"}, BUSY))
    with pytest.raises(ServerError, match="Busy"):
        fronted.models()


def test_a_lost_answer_does_not_make_a_second_job(front, fronted, png):
    front.upset("POST /api/v1/files", Lose())
    front.upset("POST /model/v1/generation", Lose(), Cut(40))
    job = fronted.generate("sim_image_to_model", file=png, client_ref="once", script=QUICK)
    assert [each.id for each in fronted.jobs(client_ref="once")] == [job.id]
    asked = front.of("POST /model/v1/generation")
    assert len(asked) == 3
    assert len({each.headers["idempotency-key"] for each in asked}) == 1
    again = [fronted.generate("sim_image_to_model", file=png, script=QUICK, idempotency_key="cat") for _ in range(2)]
    assert len({each.id for each in again}) == 1
    fronted.generate(VIDEO, script=QUICK, idempotency_key="mine")
    assert front.of("POST /model/v1/generation")[-1].headers["idempotency-key"] == "mine"
    fronted.generate(VIDEO, script=QUICK)
    assert front.of("POST /model/v1/generation")[-1].headers["idempotency-key"] not in (
        "mine",
        asked[0].headers["idempotency-key"],
    )


# -- resuming


def test_cut_events_go_on_where_they_were_cut(front, fronted):
    job = fronted.generate(VIDEO, script={"latency": 0.4})
    front.upset("/events", Cut(1700), Answer(503, {"retry-after-ms": "10"}, BUSY), Cut(0), Cut(1900))
    events = list(job.events())
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "job.succeeded"
    resumed = [seen.headers.get("last-event-id") for seen in front.of("/events")]
    assert resumed[0] is None
    assert set(resumed[1:]) <= {event.id for event in events}


def test_a_cut_download_goes_on_by_range(front, fronted, tmp_path):
    job = fronted.generate(VIDEO, script=QUICK).wait()
    front.upset("/assets/", Cut(1000), Answer(503, {"retry-after-ms": "10"}, BUSY), Cut(500))
    saved = job.save(tmp_path / "boat.mp4")
    assert saved.stat().st_size == job.output.size
    ranges = [seen.headers.get("range") for seen in front.of("/assets/")]
    assert ranges == [None, "bytes=1000-", "bytes=1000-", "bytes=1500-"]
    assert job.bytes() == saved.read_bytes()


def test_a_redirected_download_leaves_the_key_behind(front, fronted, stage, key):
    job = fronted.generate(VIDEO, script=QUICK).wait()
    with fronting(stage.url) as bucket:
        front.upset("/assets/", Answer(307, {"location": job.output.url.replace(front.url, bucket.url)}))
        assert len(job.bytes()) == job.output.size
    (fetched,) = bucket.seen
    assert "signature=" in fetched.path
    assert key not in str(fetched.headers)
    assert "authorization" not in fetched.headers


def test_a_download_that_is_not_what_was_stored_leaves_nothing(front, fronted, tmp_path):
    job = fronted.generate(VIDEO, script=QUICK).wait()
    (tmp_path / "boat.mp4").write_bytes(b"before")
    front.upset("/assets/", Spoil())
    with pytest.raises(DownloadFailed, match="sha256"):
        job.save(tmp_path / "boat.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["boat.mp4"]
    assert (tmp_path / "boat.mp4").read_bytes() == b"before"


def test_it_waits_through_a_restart_of_the_server(tmp_path, empty_store, weights):
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(empty_store, folder)
    results, port = [], free_port()
    with staged(folder, weights, port=port) as stage:
        client = Client(stage.url, stage.key())
        job = client.generate(VIDEO, script={"latency": 1.0})
        events = job.events()
        assert next(events).type == "job.queued"
        waiting = threading.Thread(target=lambda: results.append(job.wait(60)))
        waiting.start()
    with staged(folder, weights, port=port):
        waiting.join(60)
        assert [each.type for each in events][-1] == "job.succeeded"
        client.close()
    assert results[0].succeeded
    assert results[0].id == job.id


def test_ids_that_are_steps_of_a_path_are_none(front, fronted):
    for wrong in ("", ".", ".."):
        with pytest.raises(BadInput, match="no id"):
            fronted.job(wrong)
    assert front.seen == []


def test_files_that_cannot_be_read_are_told(fronted, front, tmp_path):
    closed = (tmp_path / "closed.png").open("w+b")
    closed.close()
    for wrong in ("a\0b.png", "~nobody-has-this-home/cat.png", closed, tmp_path, "/dev/zero"):
        with pytest.raises(BadInput, match="file"):
            fronted.generate("sim_image_to_model", file=wrong)
    assert front.seen == []
    with pytest.raises(NotFoundError):  # no path, so the server's to judge
        fronted.generate("sim_image_to_model", file="file_" + "a" * 5000)


def test_an_unbuffered_pipe_is_read_to_its_end(fronted, png):
    reading, writing = os.pipe()
    half = len(png) // 2

    def pour() -> None:
        with open(writing, "wb", buffering=0) as pipe:  # noqa: PTH123  it has no path
            pipe.write(png[:half])
            pipe.write(png[half:])

    threading.Thread(target=pour).start()
    with open(reading, "rb", buffering=0) as pipe:  # noqa: PTH123
        assert fronted.upload(pipe).size == len(png)


def test_an_answer_that_is_cut_at_its_very_end_is_whole():
    """Its last chunk has come; only the mark that there are no more has not."""
    content = b"all of it"
    output = OutputRecord(id="asset_1", size=len(content), sha256=hashlib.sha256(content).hexdigest())
    caught = io.BytesIO()
    flow = load(output, caught, Policy())
    assert isinstance(next(flow), Open)
    assert isinstance(flow.send(Reply(200, {})), Read)
    adding = flow.send(content)
    assert isinstance(adding, Work)
    adding.work()
    assert isinstance(flow.send(None), Read)
    assert isinstance(flow.throw(CUT), Close)
    with pytest.raises(StopIteration):
        flow.send(None)
    assert caught.getvalue() == content


def test_a_result_with_the_longest_name_is_saved_and_one_that_is_gone_is_described(client, tmp_path):
    job = client.generate(VIDEO, script=QUICK).wait()
    target = tmp_path / ("n" * 250 + ".mp4")
    assert job.save(target).stat().st_size == job.output.size
    assert [each.name for each in tmp_path.iterdir()] == [target.name]
    with pytest.raises(BadInput, match="home folder does not exist"):
        job.save("~nobody-has-this-home/boat.mp4")
    job.delete()
    shown = job._repr_html_()  # as a notebook does
    assert job.output.filename in shown
    assert "<video" not in shown
