"""What else the client has: webhooks, chat by the official SDK, notebooks, and a small import."""

import asyncio
import http.server
import re
import subprocess
import sys
import threading
from html import unescape

import pytest
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING
from stage import staged

from penstock.client import Client, Live, MissingExtra, NotFoundError, ServerError
from penstock.client.notebook import LARGEST, show_output

VIDEO = "sim_text_to_video"
QUICK = {"latency": 0.05}


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver():
    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_webhooks_are_made_tried_and_removed(client, receiver):
    hooks = client.webhooks
    hook = hooks.create(receiver, events=["job.succeeded"], description="mine")
    assert hook.secret.startswith("whsec_")
    assert hook.secret not in repr(hook)
    assert (hook.events, hooks.get(hook.id).secret) == (("job.succeeded",), None)
    assert [each.id for each in hooks.list()] == [hook.id]
    assert hooks.ping(hook.id).status == "delivered"
    client.generate(VIDEO, script=QUICK).wait()
    delivery = next(iter(hooks.deliveries(hook.id)))
    assert hooks.delivery(delivery.id).url == receiver
    assert hooks.redeliver(delivery.id).id == delivery.id
    assert hooks.rotate(hook.id).secret not in (None, hook.secret)
    assert hooks.secret().secret != hooks.rotate().secret
    assert hooks.change(hook.id, disabled=True).disabled_reason == "asked"
    hooks.delete(hook.id)
    with pytest.raises(NotFoundError):
        hooks.get(hook.id)


# -- chat


async def test_chat_by_the_official_sdk_and_without_it(tmp_path, empty_store, weights):
    async with OpenAIDouble() as double:
        settings = (
            f'[vendors.v]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
            '[[models]]\nid = "plain"\nkind = "chat"\nvendor = "v"\nmodel = "plain"\n'
            '[[models]]\nid = "broken"\nkind = "chat"\nvendor = "v"\nmodel = "status:500"\n'
        )
        await asyncio.to_thread(chat_as_a_caller, tmp_path / "data", weights, settings)


def chat_as_a_caller(folder, weights, settings):
    messages = [{"role": "user", "content": "Hello"}]
    with staged(folder, weights, settings) as stage, Client(stage.url, stage.key(), retries=0) as client:
        sdk = client.openai(max_retries=0)
        answer = sdk.chat.completions.create(model="plain", messages=messages)
        assert answer.choices[0].message.content == GREETING
        sdk.close()
        assert sorted(client.chat_models()) == ["broken", "plain"]
        chunks = list(client.chat("plain", messages))
        assert "".join(chunk.text for chunk in chunks) == GREETING
        assert chunks[-1].usage["total_tokens"] > 0
        with pytest.raises(ServerError):
            list(client.chat("broken", messages))


def test_without_the_sdk_it_says_how_to_install_it(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'penstock[openai]'")):
        client.openai()


# -- notebooks


def test_a_notebook_shows_a_job_without_asking_anyone(client, key, png):
    model = client.generate("sim_image_to_model", file=png, script=QUICK).wait()
    video = client.generate(VIDEO, script=QUICK).wait()
    shown = unescape(model._repr_html_() + video._repr_html_() + video.output.view()._repr_html_())
    assert model.id in shown
    assert "<canvas>" in shown
    assert 'src="data:video/mp4;base64,' in shown
    assert "default-src 'none'" in shown
    assert key not in shown
    assert "signature=" not in shown
    markup = re.sub(r"base64,[^\"]*|GLB=\"[^\"]*|http-equiv", "", shown)
    assert "http" not in markup
    assert set(re.findall(r"""\b(?:src|href)=["']?(\w+)""", markup)) == {"data"}


def test_texts_in_a_notebook_are_texts(client):
    job = client.generate(VIDEO, script=QUICK | {"ending": "failed"}).wait(check=False)
    odd = type(job)(id="<b>", model="<i>", status="failed", error=job.error, client=client)
    shown = odd._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<i>" not in shown
    batch = client.batch(VIDEO, [{"script": QUICK}] * 2)
    assert batch._repr_html_().count("<tr>") == 3


def test_a_table_moves_while_jobs_are_waited_for(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(MissingExtra, match="IPython"):
        Live()
    shown: list[str] = []

    class Display:
        def display(self, view, *, display_id):
            assert display_id
            self.update(view)
            return self

        def update(self, view):
            shown.append(view._repr_html_())

    monkeypatch.setitem(sys.modules, "IPython", Display())
    monkeypatch.setitem(sys.modules, "IPython.display", Display())
    client.generate(VIDEO, script=QUICK).wait(progress=Live())
    client.batch(VIDEO, [{"script": QUICK}] * 2).wait(progress=Live())
    assert "queued" in shown[0]
    assert shown[-1].count("succeeded") == 2


def test_what_is_too_large_is_told_instead(client):
    job = client.generate(VIDEO, script=QUICK).wait()
    large = type(job.output)(id="asset_x", kind="video", size=LARGEST + 1, duration_seconds=4.0, client=client)
    assert "33.6 MB, 4 s" in show_output(large, large.bytes)


# -- the import


def test_importing_it_loads_neither_the_server_nor_anything_heavy():
    heavy = {"fastapi", "starlette", "pydantic", "sqlalchemy", "aiohttp", "PIL", "httpx2", "openai", "asyncio", "rich"}
    program = (
        "import sys, penstock.client\n"
        f"print(*sorted({heavy!r} & set(sys.modules)))\n"
        "penstock.client.Client('http://127.0.0.1:1', 'psk_x').close()\n"
        f"print(*sorted({heavy - {'httpx2', 'asyncio'}!r} & set(sys.modules)))\n"
        "print(*(name for name in sys.modules if name.startswith('penstock.') and 'client' not in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines() == ["", "", ""]
