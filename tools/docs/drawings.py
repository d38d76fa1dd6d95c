"""Draws docs/pictures/{parts,job,chat}.svg: boxes and arrows that any browser shows by itself, in light and dark.

python tools/docs/drawings.py
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PANEL, INK, SOFT = "#f7f8fa", "#1f2937", "#64748b"
FILLS = {"ours": "#e0ecff", "kept": "#fdf0d0", "theirs": "#ffffff", "good": "#dcf5e4", "bad": "#fbe0e0"}

HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
role="img" aria-label="{title}" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" \
orient="auto-start-reverse">\
<path d="M0 1 10 5 0 9z" fill="{soft}"/></marker></defs>
<rect width="{width}" height="{height}" rx="10" fill="{panel}"/>
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A part: its middle, its name, and smaller words below."""

    x: int
    y: int
    name: str
    words: str = ""
    kind: Literal["ours", "kept", "theirs", "good", "bad"] = "ours"
    width: int = 150
    height: int = 48

    def draw(self) -> str:
        """As SVG."""
        left, top = self.x - self.width // 2, self.y - self.height // 2
        lines = [line for line in self.words.split("\n") if line]
        first = self.y + 5 - 8 * len(lines)
        place = f'x="{left}" y="{top}" width="{self.width}" height="{self.height}"'
        parts = [
            f'<rect {place} rx="8" fill="{FILLS[self.kind]}" stroke="{SOFT}"/>',
            _text(self.x, first, self.name, 16, INK, bold=True),
            *(_text(self.x, first + 17 * number, line, 13, SOFT) for number, line in enumerate(lines, 1)),
        ]
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From place to place, with words beside it."""

    path: tuple[tuple[int, int], ...]
    words: str = ""
    at: tuple[int, int] | None = None
    both: bool = False
    dashed: bool = False

    def draw(self) -> str:
        """As SVG."""
        line = " ".join(f"{x},{y}" for x, y in self.path)
        more = ' marker-start="url(#tip)"' if self.both else ""
        more += ' stroke-dasharray="5 4"' if self.dashed else ""
        found = (
            f'<polyline points="{line}" fill="none" stroke="{SOFT}" stroke-width="1.6" marker-end="url(#tip)"{more}/>'
        )
        (x1, y1), (x2, y2) = self.path[0], self.path[-1]
        x, y = self.at or ((x1 + x2) // 2, (y1 + y2) // 2 - 6)
        lines = self.words.split("\n") if self.words else []
        return "\n".join([found, *(_text(x, y + 15 * number, words, 13, INK) for number, words in enumerate(lines))])


def _text(x: int, y: int, words: str, size: int, colour: str, *, bold: bool = False) -> str:
    style = f'font-size="{size}" fill="{colour}" text-anchor="middle"'
    if bold:
        style += ' font-weight="600"'
    elif colour == INK:
        style += f' stroke="{PANEL}" stroke-width="4" paint-order="stroke"'
    return f'<text x="{x}" y="{y}" {style}>{escape(words)}</text>'


def draw(title: str, width: int, height: int, boxes: list[Box], arrows: list[Arrow]) -> str:
    """The whole picture."""
    head = HEAD.format(width=width, height=height, title=escape(title), soft=SOFT, panel=PANEL)
    lines = [arrow.draw() for arrow in arrows]
    return head + "\n".join([*(box.draw() for box in boxes), *lines]) + "\n</svg>\n"


# -- the pictures


def draw_parts() -> str:
    boxes = [
        Box(75, 100, "caller", "key, JSON", "theirs", 110),
        Box(245, 100, "web", "HTTP, keys, shapes", "ours", 140),
        Box(430, 45, "intake", "accepts jobs", "ours", 120),
        Box(430, 155, "relay", "chat", "ours", 120),
        Box(670, 45, "store", "jobs, events, ledger\nSQLite or PostgreSQL", "kept", 170, 70),
        Box(670, 155, "escrow", "limits, budgets", "kept", 170),
        Box(245, 265, "dispatch", "who runs which job", "ours", 140),
        Box(430, 265, "runner", "one job, step by step", "ours", 150),
        Box(670, 265, "exchange", "HTTP to vendors", "ours", 170),
        Box(430, 375, "assets", "files and results\nfolder or S3", "kept", 150, 70),
        Box(575, 375, "vendors", "one file each,\nno I/O", "ours", 110, 70),
        Box(735, 375, "the vendor", "or a built-in\nengine", "theirs", 120, 70),
    ]
    arrows = [
        Arrow(((130, 100), (175, 100)), both=True),
        Arrow(((300, 76), (370, 52)), "generate", (318, 52)),
        Arrow(((300, 124), (370, 148)), "chat", (318, 150)),
        Arrow(((490, 45), (585, 45)), "one commit", (536, 38)),
        Arrow(((490, 150), (585, 150)), "hold, settle", (536, 143)),
        Arrow(((490, 165), (600, 241)), "call, stream", (530, 190)),
        Arrow(((755, 45), (786, 45), (786, 212), (245, 212), (245, 241)), "claims rows", (330, 206)),
        Arrow(((315, 265), (355, 265))),
        Arrow(((505, 265), (585, 265)), "submit, poll", (545, 285)),
        Arrow(((430, 289), (430, 340))),
        Arrow(((620, 289), (585, 340)), both=True),
        Arrow(((710, 289), (730, 340)), both=True),
        Arrow(((355, 375), (75, 375), (75, 124)), "the bytes, with Range", (200, 368)),
    ]
    return draw("The parts of Penstock and who calls whom", 810, 425, boxes, arrows)


def draw_job() -> str:
    steps = [
        ("accepted", "row, event, hold and\nidempotency key:\none commit", "kept"),
        ("claimed", "owner and epoch:\nevery later write is\nfenced by them", "ours"),
        ("fetched", "the picture's URL is\nread, checked, kept", "ours"),
        ("ordered", "intent written, then the\npaid call, then its id", "ours"),
        ("polled", "until the vendor says\ndone, or calls back", "ours"),
        ("collected", "downloaded, opened,\nheld against what\nwas asked", "ours"),
        ("done", "state, outputs, event,\ncharge: one commit", "kept"),
    ]
    places = [(105, 65), (305, 65), (505, 65), (705, 65), (705, 320), (405, 320), (105, 320)]
    boxes = [Box(x, y, name, words, kind, 170, 92) for (x, y), (name, words, kind) in zip(places, steps, strict=True)]
    boxes.append(Box(405, 195, "reconciling", "was it taken? the vendor is asked", "ours", 240, 56))
    arrows = [
        Arrow(((190, 65), (220, 65))),
        Arrow(((390, 65), (420, 65))),
        Arrow(((590, 65), (620, 65))),
        Arrow(((720, 111), (720, 274))),
        Arrow(((620, 320), (490, 320))),
        Arrow(((320, 320), (190, 320))),
        Arrow(((640, 111), (525, 180)), "its answer is lost", (530, 142)),
        Arrow(((525, 210), (640, 274)), "found", (590, 230)),
        Arrow(((525, 194), (690, 111)), "provably not there", (650, 180), dashed=True),
    ]
    return draw("The life of a job", 810, 380, boxes, arrows)


def draw_chat() -> str:
    boxes = [
        Box(80, 60, "caller", "whole or streamed", "theirs", 130, 60),
        Box(270, 60, "guard, cycle", "bytes become\na request", "ours", 140, 72),
        Box(450, 60, "completions", "key, body, model", "ours", 140, 72),
        Box(620, 60, "relay", "limits, hold,\nroute", "ours", 120, 72),
        Box(735, 195, "exchange", "on a kept\nconnection", "ours", 120, 72),
        Box(735, 330, "vendor", "its reply,\nbyte by byte", "theirs", 120, 72),
        Box(500, 195, "passed or rendered", "OpenAI's dialect as it is,\nothers' rewritten", "ours", 200, 72),
        Box(240, 195, "answer", "counts, watches silence, ends\nwith [DONE] or an error", "ours", 220, 72),
        Box(240, 330, "tally, journal, escrow", "usage written in batches,\ncost settled once", "kept", 220, 72),
    ]
    arrows = [
        Arrow(((145, 60), (200, 60))),
        Arrow(((340, 60), (380, 60))),
        Arrow(((520, 60), (560, 60))),
        Arrow(((660, 96), (710, 159))),
        Arrow(((735, 231), (735, 294)), both=True),
        Arrow(((675, 310), (560, 231)), "nothing is sent before\nits first byte", (560, 286)),
        Arrow(((400, 195), (350, 195))),
        Arrow(((160, 159), (95, 90))),
        Arrow(((240, 231), (240, 294)), "once it is over", (300, 266)),
    ]
    return draw("The path of a chat request", 810, 380, boxes, arrows)


DRAWINGS = {"parts.svg": draw_parts, "job.svg": draw_job, "chat.svg": draw_chat}

if __name__ == "__main__":
    for name, make in DRAWINGS.items():
        (PICTURES / name).write_text(make())
