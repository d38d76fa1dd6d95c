"""The commands that speak to a server: what they print where, and the exit codes that scripts go by."""

import json
import re
import shlex

import pytest
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING
from remote_shell import QUICK, VIDEO, Shell, on_terminal
from stage import staged
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.cli.remote import connection
from penstock.client import Client


@pytest.fixture
def shell(stage, key) -> Shell:
    return Shell(stage.url, key)


@pytest.fixture
def cat(tmp_path, png):
    (tmp_path / "cat.png").write_bytes(png)
    return tmp_path / "cat.png"


# -- generate


def test_a_picture_becomes_a_file(shell, cat, tmp_path):
    result = shell(f"generate sim_image_to_model --file {cat} {QUICK} face_limit=100 -o {tmp_path}/cat.glb")
    assert result.stdout == f"{tmp_path}/cat.glb\n"
    assert (tmp_path / "cat.glb").read_bytes()[:4] == b"glTF"
    assert "succeeded in" in result.stderr
    job = shell.json(f"generate sim_image_to_model --file {cat} {QUICK} -o {tmp_path} --client-ref mine")
    assert (job["status"], job["client_ref"], job["saved"]) == ("succeeded", "mine", f"{tmp_path}/model.glb")
    assert shell(f"generate {VIDEO} {QUICK}").stdout.startswith(
        f"{shell.environment['PENSTOCK_BASE_URL']}/api/v1/assets/"
    )
    raw = CliRunner().invoke(app, ["generate", VIDEO, *shlex.split(QUICK), "-o", "-"], env=shell.environment)
    assert raw.stdout_bytes[4:8] == b"ftyp"


def test_params_are_json_where_they_are_and_nest(shell):
    line = "generate sim_image_to_model file.url=https://example.com/cat.png texture=true model_seed=7 --dry-run"
    (given,) = shell.json(line)["input"]
    assert (given["file"], given["texture"], given["model_seed"]) == ({"url": "https://example.com/cat.png"}, True, 7)
    for text in ("NaN", "A boat", '"8"', "8 boats"):
        (given,) = shell.json(f"generate vendorb_video_31 --dry-run {shlex.quote(f'prompt={text}')}")["input"]
        assert given["prompt"] == text.strip('"')
    told = shell("generate vendorb_video_31 prompt=x --dry-run").stdout
    assert "cost: up to 0.30 USD" in told
    assert "durationSeconds = 8" in told
    for wrong, told in (("prompt", "key=value"), ("=x", "key=value"), ("file=1 file.url=x", "a value already")):
        assert told in shell(f"generate {VIDEO} {wrong}", 2).stderr


def test_it_can_be_started_and_looked_after_later(shell, tmp_path):
    wanted = f"generate {VIDEO} {QUICK} prompt='looked after later' --no-wait"
    job_id = shell(f"{wanted} --idempotency-key same").stdout.strip()
    assert shell(f"{wanted} --idempotency-key same").stdout.strip() == job_id
    assert shell(f"jobs watch {job_id} -o {tmp_path}").stdout == f"{tmp_path}/video.mp4\n"
    assert shell(f"{wanted} --reuse").stdout.strip() == job_id
    assert shell.json("jobs list --limit 1 --status succeeded")[0]["id"] == job_id
    assert job_id in shell(f"jobs list --model {VIDEO}").stdout
    assert [each["id"] for each in shell.json(f"jobs list --search {job_id[:-2]}")] == [job_id]
    assert shell.json("jobs list --search 'unheard of'") == []
    assert shell.json(f"jobs show {job_id}")["status"] == "succeeded"
    assert "input.resolution" in shell(f"jobs show {job_id}").stdout
    again = shell.json(f"jobs rerun {job_id} resolution=1080p")
    assert (again["input"]["resolution"], again["id"] != job_id) == ("1080p", True)
    assert shell.json(f"jobs rerun {job_id} --no-wait")["model"] == VIDEO
    assert shell.json(f"jobs delete {job_id}") == {"id": job_id, "deleted": True}
    assert shell.json(f"jobs show {job_id}", 3)["error"]["code"] == "job_deleted"
    slow = shell(f"""generate {VIDEO} 'script={{"latency": 60}}' --no-wait""").stdout.strip()
    assert shell.json(f"jobs watch {slow} --timeout 0.1", 6)["id"] == slow
    assert re.fullmatch(rf"{slow} cancel(ing|ed)\n", shell(f"jobs cancel {slow}").stdout)
    assert shell.json(f"jobs watch {slow}", 1)["status"] == "canceled"


# -- exit codes and errors


def test_errors_are_one_block_and_an_exit_code(shell, stage):
    failed = f"""generate {VIDEO} 'script={{"latency": 0.05, "ending": "filtered"}}'"""
    assert "content_filtered" in shell(failed, 1).stderr
    assert shell.json(failed, 1)["error"]["code"] == "content_filtered"
    refused = shell("generate vendorb_video_31 promt=x", 3)
    assert refused.stdout == ""
    assert "Did you mean `prompt`?" in refused.stderr
    assert "req_" in refused.stderr
    assert shell.json("generate vendorb_video_31", 3)["error"]["param"] == "input.0.params.prompt"
    assert "cannot be read" in shell("generate sim_image_to_model --file nothing.png", 2).stderr
    assert "PENSTOCK_API_KEY" in shell("jobs list", 2, PENSTOCK_API_KEY=None).stderr
    wrong = shell("jobs list", 3, PENSTOCK_API_KEY="psk_5h989ejrceh2wnrsx8_verysecret")
    assert "penstock key create" in wrong.stderr
    assert "verysecret" not in wrong.output
    assert "No connection" in shell("jobs list --base-url http://127.0.0.1:9", 4).stderr
    poor = stage.key(budgets={"total": "0.10"})
    assert "insufficient_budget" in shell("generate vendorb_video_31 prompt=x", 5, PENSTOCK_API_KEY=poor).stderr
    assert "cannot be written as JSON" in shell(f"generate {VIDEO} durationSeconds=1e999", 2).stderr
    assert "nothing at" in shell("jobs show ../jobs", 3).stderr


def test_the_settings_say_where_the_server_is(shell, stage, tmp_path):
    (tmp_path / "config.toml").write_text(f"[server]\nport = {stage.url.rpartition(':')[2]}\n")
    (tmp_path / "other.toml").write_text('[server]\nhost = "::1"\nport = 9\n')
    (tmp_path / "wrong.toml").write_text("[server]\nprot = 9\n")
    job_id = shell(f"generate {VIDEO} {QUICK} --no-wait").stdout.strip()
    asked = f"jobs show {job_id}"
    del shell.environment["PENSTOCK_BASE_URL"]
    shell(f"{asked} --data {tmp_path}")
    shell(asked, PENSTOCK_DATA=str(tmp_path))
    shell(asked, PENSTOCK_CONFIG=str(tmp_path / "config.toml"))
    shell(asked, PENSTOCK_CONFIG=str(tmp_path / "other.toml"), PENSTOCK_BASE_URL=stage.url)
    other = f"{asked} --config {tmp_path}/other.toml"
    assert "No connection to http://[::1]:9:" in shell(other, 4, PENSTOCK_DATA=str(tmp_path)).stderr
    assert "Did you mean `port`?" in shell(asked, 2, PENSTOCK_CONFIG=str(tmp_path / "wrong.toml")).stderr


def test_models_and_jobs_are_completed(shell, monkeypatch):
    monkeypatch.setattr(connection, "QUICK_SECONDS", 60.0)
    job_id = shell(f"generate {VIDEO} {QUICK} --no-wait").stdout.strip()

    def complete(line: str, **environment: str) -> str:
        asked = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        known = {**shell.environment, **asked, **environment}
        return CliRunner().invoke(app, [], env=known, prog_name="penstock").stdout

    assert complete("penstock generate vendorb").split() == ["vendorb_video_31"]
    assert job_id in complete("penstock jobs show job_").split()
    assert complete("penstock generate vendorb", PENSTOCK_BASE_URL="http://127.0.0.1:9").split() == []


# -- webhooks


def test_webhooks_from_the_shell(shell):
    made = shell("webhooks create https://example.com/ --event job.failed --description mine")
    assert made.stdout.startswith("whsec_")
    (hook,) = shell.json("webhooks list")
    assert (hook["events"], hook["description"]) == (["job.failed"], "mine")
    assert hook["id"] in shell("webhooks list").stdout
    assert shell(f"webhooks rotate {hook['id']}").stdout != made.stdout
    assert shell("webhooks rotate").stdout.startswith("whsec_")
    shell(f"webhooks delete {hook['id']}")
    nobody = shell.json("webhooks create http://127.0.0.1:8080/")
    assert shell.json(f"webhooks ping {nobody['id']}", 1)["status"] == "failed"
    (delivery,) = shell.json(f"webhooks deliveries {nobody['id']}")
    assert delivery["id"] in shell("webhooks deliveries --status failed").stdout
    assert shell.json(f"webhooks redeliver {delivery['id']}")["id"] == delivery["id"]
    assert shell.json(f"webhooks delete {nobody['id']}")["deleted"]


# -- on a terminal


def test_a_terminal_without_colours_gets_none(shell):
    shell.environment["NO_COLOR"] = "1"
    shown, code = on_terminal(shell, "jobs show job_nothing")
    assert code == 3
    assert "job_not_found" in shown
    assert "\x1b" not in shown


def test_a_terminal_shows_progress_and_ctrl_c_asks(shell, client):
    slow = f"""generate {VIDEO} 'script={{"latency": 60}}'"""
    shown, code = on_terminal(shell, slow, (r"generating[^\n]*s left", "\x03"), (r"\[k\]", "c\n"))
    assert code == 130
    assert "running: generating" in shown
    assert "━" in shown
    (job_id,) = set(re.findall(r"job_\w+", shown))
    assert client.job(job_id).wait(30, check=False).status == "canceled"


@pytest.mark.parametrize(("answer", "status"), [("c", "cancel"), ("k", "running")])
def test_ctrl_c_leaves_scripts_the_record(shell, client, answer, status):
    slow = f"""generate {VIDEO} --json 'script={{"latency": 60}}'"""
    shown, code = on_terminal(shell, slow, (r"generating[^\n]*s left", "\x03"), (r"\[k\]", f"{answer}\n"))
    assert code == 130
    record = json.loads(re.search(r"^\{.*^\}", shown, re.DOTALL | re.MULTILINE)[0])
    assert record["status"].startswith(status)
    assert client.cancel(record["id"]).wait(30, check=False).status == "canceled"


def test_a_terminal_holds_a_conversation(tmp_path, weights):
    import asyncio  # noqa: PLC0415  here alone

    async def talk() -> tuple[str, int]:
        async with OpenAIDouble() as double:
            settings = (
                f'[vendors.v]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
                '[[models]]\nid = "plain"\nkind = "chat"\nvendor = "v"\nmodel = "plain"\n'
                'price = {input_per_million = "1000", output_per_million = "1000"}\n'
                '[[models]]\nid = "smollm2-135m"\nkind = "chat"\nvendor = "local"\n'
            )
            return await asyncio.to_thread(converse, tmp_path / "data", weights, settings)

    shown, code = asyncio.run(talk())
    assert code == 0
    assert shown.count(GREETING) == 2
    assert re.search(r"\d+ \+ \d+ tokens, 0\.\d+ USD", shown)
    assert "does not exist" in shown
    assert "smollm2-135m: Small demonstration model" in shown


def converse(folder, weights, settings):
    with staged(folder, weights, settings) as stage:
        shell = Shell(stage.url, stage.key())
        once = shell.json("chat Hello there")
        assert (once["content"], once["model"], once["finish_reason"]) == (GREETING, "plain", "stop")
        assert shell("chat -m plain", typed="Hello").stdout == f"{GREETING}\n"
        assert shell("chat -m plain 'Sum up:' -", typed="Hello").stdout == f"{GREETING}\n"
        shell("chat", 2, typed=" ")
        shell("chat -m nothing Hello", 3)
        with Client(stage.url, shell.environment["PENSTOCK_API_KEY"]) as client:
            assert client.chat_models() == ("plain", "smollm2-135m")
        steps = (  # each waits for its prompt: what is typed before, readline may lose
            ("> ", "Hello\n"),
            ("(?s)USD.*?> ", "/model smollm2-135m\n"),
            ("> ", "/model nothing\n"),
            ("> ", "Hello\n"),
            ("(?s)request.*?> ", "/model plain\n"),
            ("> ", "/reset\n"),
            ("> ", "/system Be brief\n"),
            ("> ", "/what\n"),
            ("> ", "Hello\n"),
            ("(?s)USD.*?> ", "/exit\n"),
        )
        return on_terminal(shell, "chat", *steps)
