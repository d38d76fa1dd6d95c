"""`penstock chat`: a conversation in the terminal, or a single question."""

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import fail, print_json
from penstock.cli.remote.connection import complete_chat_models, speaks_to_server
from penstock.cli.remote.errors import Code, plain, print_error

if TYPE_CHECKING:
    from penstock.client import Client

HELP = "/model ID  change model    /system TEXT  change system prompt    /reset  start over    /exit  or Ctrl-D  end"


@speaks_to_server
def chat(
    client: "Client",
    prompt: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="One question; - stands for stdin.", show_default=False),
    ] = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="ID", help="The model; default: the first.", autocompletion=complete_chat_models
        ),
    ] = None,
    system: Annotated[str | None, typer.Option("--system", "-s", metavar="TEXT", help="The system prompt.")] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum tokens of an answer.")] = None,
    temperature: Annotated[float | None, typer.Option(metavar="X", help="Sampling temperature.")] = None,
    as_json: AsJson = False,
) -> None:
    """Chat with a model."""
    question = _question(prompt or [])
    if question is None and as_json:
        fail("--json needs a prompt.")
    if question is not None and not question.strip():
        fail("The question is empty.")
    fields = {"max_tokens": max_tokens, "temperature": temperature}
    chosen = model or _first_model(client)
    given = {name: value for name, value in fields.items() if value is not None}
    talk = Talk(client, chosen, system, given)
    if question is None:
        _converse(talk)
    else:
        _answer_once(talk, question, as_json=as_json)


def _question(words: list[str]) -> str | None:
    """Return the question, or None for a conversation."""
    if not words:
        return None if sys.stdin is not None and sys.stdin.isatty() else _piped_in()
    return " ".join(_piped_in() if word == "-" else word for word in words)


def _piped_in() -> str:
    """Read stdin as UTF-8, whatever the locale. Invalid bytes are replaced."""
    return "" if sys.stdin is None else sys.stdin.buffer.read().decode(errors="replace")


def _first_model(client: "Client") -> str:
    models = client.chat_models()
    if not models:
        fail("The server has no chat model that this key may use.", code=Code.REFUSED)
    return models[0]


@dataclass
class Talk:
    """A conversation: its messages, and usage and cost of the last answer."""

    client: "Client"
    model: str
    system: str | None
    fields: dict[str, Any]
    said: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    cost: Decimal | None = None
    finish_reason: str | None = None

    def ask(self, question: str, *, aloud: bool) -> str:
        """Return the answer, and print it as it arrives if `aloud`. An interrupted answer is kept as far as it came."""
        self.said.append({"role": "user", "content": question})
        messages = [{"role": "system", "content": self.system}] if self.system else []
        self.usage, self.cost, self.finish_reason = {}, None, None
        pieces: list[str] = []
        try:
            for piece in self.client.chat(self.model, [*messages, *self.said], **self.fields):
                pieces.append(piece.text)
                if aloud and piece.text:
                    sys.stdout.write(plain(piece.text) if sys.stdout.isatty() else piece.text)
                    sys.stdout.flush()
                self.usage = dict(piece.usage or self.usage)
                self.cost = self.cost if piece.cost is None else piece.cost
                self.finish_reason = piece.finish_reason or self.finish_reason
        except BaseException:
            if not pieces:
                self.said.pop()
            raise
        finally:
            if pieces:
                self.said.append({"role": "assistant", "content": "".join(pieces)})
        return "".join(pieces)

    def describe_model(self) -> str:
        """Return the model's id, with its description if the server has one."""
        from penstock.client import PenstockClientError

        with contextlib.suppress(PenstockClientError):
            description = self.client.model(self.model).description
            return f"{self.model}: {description}" if description else self.model
        return self.model

    def describe_usage(self) -> str:
        """Return tokens and cost of the last answer as text, as far as known."""
        parts: list[str] = []
        if self.usage:
            parts.append(f"{self.usage.get('prompt_tokens', 0)} + {self.usage.get('completion_tokens', 0)} tokens")
        if (cost := self.reckon_cost()) is not None:
            parts.append(f"{cost} USD")
        if self.finish_reason == "length":
            parts.append("cut at the maximum length")
        return ", ".join(parts)

    def reckon_cost(self) -> str | None:
        """Return the cost of the last answer in USD, from the server or computed from the model's price."""
        from penstock.client import PenstockClientError

        cost = self.cost
        if cost is None:
            with contextlib.suppress(PenstockClientError):
                cost = reckon(self.usage, self.client.model(self.model).price)
        return None if cost is None else f"{cost.normalize():f}"


def reckon(usage: Mapping[str, Any], price: Mapping[str, Any]) -> Decimal | None:
    """Return the cost of tokens in USD, or None if usage or price is unknown."""
    if not usage or price.get("input_per_million") is None or price.get("output_per_million") is None:
        return None
    details: Mapping[str, Any] = usage.get("prompt_tokens_details") or {}
    names = ("cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    cached, writes, hourly = (int(details.get(name) or 0) for name in names)
    fresh = int(usage.get("prompt_tokens") or 0) - cached - writes
    full = Decimal(price["input_per_million"])
    again = Decimal(price.get("cached_input_per_million") or full)
    write = Decimal(price.get("cache_write_per_million") or full)
    hour = Decimal(price.get("cache_write_1h_per_million") or write)
    read = fresh * full + cached * again + (writes - hourly) * write + hourly * hour
    answered = int(usage.get("completion_tokens") or 0) * Decimal(price["output_per_million"])
    return (read + answered) / 1_000_000


def _answer_once(talk: Talk, question: str, *, as_json: bool) -> None:
    answer = talk.ask(question, aloud=not as_json)
    if as_json:
        record = {"model": talk.model, "content": answer, "finish_reason": talk.finish_reason}
        print_json({**record, "usage": talk.usage, "cost": talk.reckon_cost()})
        return
    typer.echo()
    if sys.stderr.isatty():
        typer.secho(f"{plain(talk.describe_model())} ({talk.describe_usage()})", err=True, dim=True)


# -- the conversation


def _converse(talk: Talk) -> None:
    with contextlib.suppress(ImportError):  # line editing and history, if the platform has them
        import_module("readline")
    typer.secho(f"{plain(talk.describe_model())}\n{HELP}", err=True, dim=True)
    while True:
        try:
            line = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            typer.echo(err=True)
            return
        if line in ("/exit", "/quit"):
            return
        if line.startswith("/"):
            _obey(talk, line)
        elif line:
            _reply(talk, line)


def _obey(talk: Talk, line: str) -> None:
    match line.partition(" "):
        case ("/model", " ", name):
            talk.model = name.strip()
            typer.secho(plain(talk.describe_model()), err=True, dim=True)
        case ("/system", _, text):
            talk.system = text.strip() or None
        case ("/reset", _, _):
            talk.said.clear()
        case _:
            typer.secho(HELP, err=True, dim=True)


def _reply(talk: Talk, line: str) -> None:
    """Print one answer. Neither an error nor Ctrl-C ends the conversation."""
    from penstock.client import PenstockClientError

    try:
        talk.ask(line, aloud=True)
        typer.echo()
        typer.secho(talk.describe_usage(), err=True, dim=True)
    except PenstockClientError as error:
        typer.echo()
        print_error(error, as_json=False)
    except KeyboardInterrupt:
        typer.echo()
        typer.secho("stopped", err=True, dim=True)
