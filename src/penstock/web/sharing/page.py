"""The page of a share link as HTML. Only 3D models need the script, which brings the console's viewer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("share.css").read_text("utf-8")
KILOBYTE = 1000
MARK = (
    '<svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">'
    '<path d="M5 4v24M27 4v24" stroke-width="2.6" stroke-linecap="round"/><rect x="9" y="4" width="14" height="11" '
    'rx="1.8"/><path d="M9 20q3.5-2.6 7 0t7 0M9 26q3.5-2.6 7 0t7 0" fill="none" stroke-width="2.4" '
    'stroke-linecap="round"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Shown:
    """Content of the page: the public record, the model's title, and whether its script is built."""

    record: Mapping[str, Any]
    title: str
    has_script: bool

    @property
    def primaries(self) -> Sequence[Mapping[str, Any]]:
        """Return the outputs without their previews."""
        outputs = self.record["outputs"]
        return [output for output in outputs if output["role"] != "preview"] or outputs

    @property
    def preview(self) -> Mapping[str, Any] | None:
        """Return the preview picture, if there is one."""
        pictures = (output for output in self.record["outputs"] if output["kind"] == "image")
        return next((picture for picture in pictures if picture["role"] == "preview"), None)


def draw_page(shown: Shown, nonce: str) -> str:
    """Return the page of a link that works."""
    record = shown.record
    outputs = "".join(_draw_output(output, shown.preview) for output in shown.primaries)
    script = '<script type="module" src="/console/share.js"></script>' if shown.has_script else ""
    body = f"""<main>
<h1>{escape(shown.title)}</h1>
{outputs}
{_draw_input(record)}
<p class="end">{_draw_end(record["expires_at"])}</p>
</main>"""
    return _draw(f"{shown.title} · shared", body, nonce, script)


def draw_ended(nonce: str) -> str:
    """Return the page of every link that does not work."""
    body = """<main class="ended">
<h1>This link does not work</h1>
<p>It may have expired, or it was revoked. Ask the person who shared it for a new link.</p>
</main>"""
    return _draw("This link does not work", body, nonce, "")


def _draw(title: str, body: str, nonce: str, script: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex, nofollow, noarchive">
<meta name="nonce" content="{nonce}">
<link rel="icon" href="/console/mark.svg" type="image/svg+xml">
<title>{escape(title)}</title>
<style nonce="{nonce}">{STYLE}</style>
{script}
</head>
<body>
<header>{MARK}<span>Penstock</span></header>
{body}
</body>
</html>
"""


def _draw_output(output: Mapping[str, Any], preview: Mapping[str, Any] | None) -> str:
    url, name = escape(output["url"]), escape(output["url"].rpartition("/")[2])
    sidecar = output["sidecar_url"]
    proof = f' <a href="{escape(sidecar)}" download>Signed sidecar</a>' if sidecar else ""
    return f"""<figure>
<div class="stage">{_draw_media(output, preview)}</div>
<figcaption><a class="download" href="{url}" download="{name}">Download</a>{proof}
<span>{escape(_facts(output))}</span></figcaption>
</figure>"""


def _draw_media(output: Mapping[str, Any], preview: Mapping[str, Any] | None) -> str:
    url = escape(output["url"])
    size = f' width="{output["width"]}" height="{output["height"]}"' if output["width"] and output["height"] else ""
    if output["kind"] == "video":
        return f'<video src="{url}"{size} controls loop playsinline preload="metadata" aria-label="Film"></video>'
    if output["kind"] == "image":
        return f'<img src="{url}"{size} alt="Shared picture">'
    still = "" if preview is None else f'<img src="{escape(preview["url"])}" alt="Preview of the 3D model">'
    return f'<div class="model" data-model="{url}">{still}</div>'


def _draw_input(record: Mapping[str, Any]) -> str:
    """Return the prompt and the input picture, as far as they are shared."""
    parts: list[str] = []
    if record["prompt"] is not None:
        parts.append(f'<h2>Prompt</h2><p class="prompt" dir="auto">{escape(record["prompt"])}</p>')
    if record["input_url"] is not None:
        parts.append(f'<h2>Made from</h2><img class="input" src="{escape(record["input_url"])}" alt="Input picture">')
    return f'<section aria-label="Input">{"".join(parts)}</section>' if parts else ""


def _draw_end(expires_at: str) -> str:
    moment = datetime.fromisoformat(expires_at)
    words = f"{moment.day} {moment:%B %Y, %H:%M} UTC"
    return f'This link works until <time datetime="{escape(expires_at)}">{words}</time>.'


def _facts(output: Mapping[str, Any]) -> str:
    """Return the size and the length of an output in one line."""
    facts = [
        _dimensions(output),
        f"{output['duration_seconds']:g} s" if output["duration_seconds"] else None,
        f"{output['faces']:,} faces" if output["faces"] else None,
        _size(output["bytes"]),
    ]
    return " · ".join(fact for fact in facts if fact)


def _dimensions(output: Mapping[str, Any]) -> str | None:
    width, height = output["width"], output["height"]
    return f"{width} \N{MULTIPLICATION SIGN} {height}" if width and height else None


def _size(count: float) -> str:
    """Return a number of bytes in decimal units."""
    for unit in ("bytes", "kB", "MB"):
        if count < KILOBYTE:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= KILOBYTE
    return f"{count:.3g} GB"
