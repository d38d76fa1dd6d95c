"""Logs: one parseable line per record, with its context and without secrets."""

import asyncio
import io
import json
import logging

import pytest

from penstock.observability import logs

SECRET = "q7s/d+8\n\"ü'=="
logger = logging.getLogger("penstock.test")


@pytest.fixture
def stream():
    """Where the lines go; what `configure` changes for the whole process is put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True


@pytest.fixture
def lines(stream):
    logs.configure("DEBUG", json=True, stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_says_when_what_and_where(lines):
    logger.warning("stored %d files", 3, extra={"fields": {"bytes": 12, "took": 0.5}})
    (line,) = lines()
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "penstock.test",
        "message": "stored 3 files",
        "bytes": 12,
        "took": 0.5,
    }


def test_fields_cannot_replace_what_every_line_has(lines):
    logger.info("mine", extra={"fields": {"message": "forged", "level": "none"}})
    assert (lines()[0]["message"], lines()[0]["level"]) == ("mine", "info")


def test_a_newline_stays_inside_its_line(lines):
    logger.info("one\ntwo")
    assert lines()[0]["message"] == "one\ntwo"


async def test_bound_fields_follow_the_work_and_nothing_else(lines):
    async def work(name):
        with logs.bind(request_id=name):
            await asyncio.sleep(0)
            with logs.bind(job_id=f"job of {name}", account="acme"):
                await asyncio.create_task(inner())
            logger.info("after")

    async def inner():
        logger.info("inner")

    await asyncio.gather(work("a"), work("b"))
    logger.info("outside")
    seen = {(line["message"], line.get("request_id"), line.get("job_id"), line.get("account")) for line in lines()}
    assert seen == {
        *(("inner", name, f"job of {name}", "acme") for name in "ab"),
        *(("after", name, None, None) for name in "ab"),
        ("outside", None, None, None),
    }


def test_an_exception_is_one_field(lines):
    try:
        [].pop()
    except IndexError:
        logger.exception("failed")
    (line,) = lines()
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("IndexError: pop from empty list")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("key psk_7h2kq9_s3cr3t-_x used", "key psk_7h2kq9_*** used"),
        ("Authorization: Bearer psk_7h2kq9_s3cr3t", "Authorization: Bearer psk_7h2kq9_***"),
        ("authorization: bearer sk-live.abc/123", "authorization: bearer ***"),
        ('{"Authorization": "Bearer ey.J0.x"}', '{"Authorization": "Bearer ***"}'),
        ("only the public id: psk_7h2kq9", "only the public id: psk_7h2kq9"),
        (f"plain {SECRET} end", "plain *** end"),
        (f"in JSON {json.dumps({'key': SECRET})}", 'in JSON {"key": "***"}'),
        (f"as Python shows it {[SECRET]}", "as Python shows it [***]"),
        ("in a URL ?key=q7s%2Fd%2B8%0A%22%C3%BC%27%3D%3D&x=1", "in a URL ?key=***&x=1"),
        ("twice long-secret-extended long-secret", "twice *** ***"),
    ],
)
def test_secrets_are_masked_wherever_they_stand(lines, said, written):
    for secret in (SECRET, "long-secret", "long-secret-extended"):
        logs.hide(secret)
    error = ValueError(said)
    with logs.bind(account=said):
        logger.error("%s", said, exc_info=error, extra={"fields": {"deep": [{"er": said}], said: 1}})
    (line,) = lines()
    assert mask_quotes(line["message"]) == written
    assert mask_quotes(line["account"]) == written
    assert mask_quotes(line["deep"][0]["er"]) == written
    assert mask_quotes(line["exception"]) == f"ValueError: {written}"
    assert written in {mask_quotes(name) for name in line}


def mask_quotes(text: str) -> str:
    """Python chooses the quotes of a repr by what is inside."""
    return text.replace("['***']", "[***]").replace('["***"]', "[***]")


def test_a_traceback_through_several_errors_is_masked(lines):
    def call_vendor():
        raise KeyError("Bearer abc.def")

    try:
        call_vendor()
    except KeyError:
        try:
            int("psk_id12_verysecret")
        except ValueError:
            logger.exception("failed")
    text = lines()[0]["exception"]
    assert "During handling" in text
    assert "'psk_id12_***'" in text
    assert "abc.def" not in text
    assert "verysecret" not in text


def test_a_wrong_call_still_leaves_a_masked_line(lines, stream):
    logger.info("%d files", "psk_id12_verysecret")
    assert lines()[0]["message"] == "%d files ('psk_id12_***',)"
    assert "verysecret" not in stream.getvalue()


def test_short_values_are_not_hidden(lines):
    logs.hide("")
    logs.hide("a")
    logger.info("a banana")
    assert lines()[0]["message"] == "a banana"


def test_lines_are_bounded(lines, stream):
    logger.info("x" * 1_000_000, extra={"fields": {"body": b"y" * 1_000_000, "many": list(range(1_000_000))}})
    logger.info("wide", extra={"fields": {"texts": ["z" * 8_000] * 60}})
    assert len(stream.getvalue()) < 20_000
    first, second = lines()
    assert first["body"] == "1000000 bytes"
    assert first["message"].endswith("(1000000 characters)")
    assert "left out" in second["fields"]


def test_numbers_that_are_not_json_become_text(lines, stream):
    logger.info("odd", extra={"fields": {"a": float("nan"), "b": float("inf"), "c": None, "d": True}})
    assert "NaN" not in stream.getvalue()
    assert [lines()[0][name] for name in "abcd"] == ["nan", "inf", None, True]


def test_the_level_decides_and_libraries_are_quieter(stream):
    logs.configure("INFO", json=True, stream=stream)
    logger.debug("no")
    logging.getLogger("uvicorn.error").info("no")
    logger.info("yes")
    logging.getLogger("uvicorn.error").warning("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes", "yes"]


def test_text_is_one_escaped_line_for_a_person(stream):
    logs.configure("INFO", json=False, stream=stream)
    with logs.bind(request_id="req_1"):
        logger.info("evil\n12:00:00 forged \x1b[2J psk_id12_secret", extra={"fields": {"bytes": 3}})
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert text.rstrip().endswith("psk_id12_*** request_id=req_1 bytes=3")


def test_text_is_chosen_for_a_terminal_only(stream):
    logs.configure("INFO", stream=stream)
    logger.info("to a pipe")
    assert json.loads(stream.getvalue())["message"] == "to a pipe"
    stream.isatty = lambda: True
    logs.configure("INFO", stream=stream)
    logger.info("to a person")
    assert stream.getvalue().splitlines()[1].endswith("penstock.test: to a person")
