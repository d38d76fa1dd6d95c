"""Draws docs/pictures/{parts,job,chat}.svg: boxes and arrows that any browser shows by itself, in light and dark.

python tools/drawings.py
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
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
            _text(self.x, first, self.name, 15, INK, bold=True),
            *(_text(self.x, first + 17 * number, line, 12, SOFT) for number, line in enumerate(lines, 1)),
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
        return "\n".join([found, *(_text(x, y + 15 * number, words, 12, INK) for number, words in enumerate(lines))])


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
        Box(90, 90, "caller", "key, JSON", "theirs", 120),
        Box(280, 90, "web", "HTTP, keys, shapes"),
        Box(500, 40, "intake", "accepts jobs"),
        Box(500, 140, "relay", "chat"),
        Box(500, 240, "escrow", "limits, budgets", "ours"),
        Box(740, 40, "store", "jobs, events, ledger\nSQLite or PostgreSQL", "kept", 190, 66),
        Box(740, 240, "dispatch", "who runs which job", "ours", 190),
        Box(740, 340, "runner", "one job, step by step", "ours", 190),
        Box(500, 340, "assets", "files and results\nfolder or S3", "kept", 150, 66),
        Box(980, 240, "exchange", "HTTP to vendors"),
        Box(980, 90, "vendors", "one file each, no I/O"),
        Box(1180, 240, "the vendor", "or a built-in engine", "theirs", 150),
    ]
    arrows = [
        Arrow(((150, 90), (205, 90)), both=True),
        Arrow(((355, 78), (425, 46)), "POST … generate", (366, 44)),
        Arrow(((355, 102), (425, 134)), "POST /llm/…", (372, 138)),
        Arrow(((575, 40), (645, 40)), "one\ncommit", (610, 58)),
        Arrow(((500, 164), (500, 216)), "holds, settles", (500, 194)),
        Arrow(((575, 232), (680, 73)), dashed=True),
        Arrow(((740, 73), (740, 216)), "claims rows", (740, 160)),
        Arrow(((740, 264), (740, 316))),
        Arrow(((835, 330), (925, 262)), "submit, poll,\ndownload", (900, 316)),
        Arrow(((575, 140), (905, 232)), "call, stream", (640, 176)),
        Arrow(((980, 216), (980, 114)), "what to say,\nwhat it means", (980, 162), both=True),
        Arrow(((1055, 240), (1105, 240)), both=True),
        Arrow(((645, 340), (575, 340))),
        Arrow(((425, 340), (90, 340), (90, 114)), "the bytes, with Range", (240, 334)),
    ]
    return draw("The parts of Penstock and who calls whom", 1270, 390, boxes, arrows)


def draw_job() -> str:
    steps = [
        ("accepted", "row, event, hold,\nidempotency key:\none commit", "kept"),
        ("claimed", "owner and epoch:\nevery later write\nis fenced by them", "ours"),
        ("fetched", "the picture's URL\nis read, checked\nand kept", "ours"),
        ("ordered", "intent written, then\nthe paid call, then\nits id written", "ours"),
        ("polled", "until the vendor\nsays done; or it\ncalls back", "ours"),
        ("collected", "downloaded, opened,\nheld against what\nwas asked", "ours"),
        ("done", "state, outputs,\nevent, charge:\none commit", "kept"),
    ]
    boxes = [Box(90 + 172 * n, 70, name, words, kind, 148, 96) for n, (name, words, kind) in enumerate(steps)]
    boxes.append(Box(606, 200, "reconciling", "was it taken? ask the vendor", "ours", 210, 56))
    arrows = [Arrow(((164 + 172 * n, 70), (188 + 172 * n, 70))) for n in range(len(steps) - 1)]
    arrows += [
        Arrow(((606, 118), (606, 172)), "the answer is lost", (654, 150)),
        Arrow(((711, 200), (778, 200), (778, 118)), "found", (750, 192)),
        Arrow(
            ((501, 200), (450, 200), (450, 144), (560, 144), (560, 118)), "provably not there", (430, 220), dashed=True
        ),
    ]
    return draw("The life of a job", 1216, 250, boxes, arrows)


def draw_chat() -> str:
    steps = [
        ("guard, cycle", "bytes become\na request", "ours"),
        ("completions", "key, body,\nmodel", "ours"),
        ("relay", "limits, hold,\nroute", "ours"),
        ("exchange", "the call, on a\nkept connection", "ours"),
        ("vendor", "its reply,\nbyte by byte", "theirs"),
    ]
    boxes = [Box(90 + 186 * n, 60, name, words, kind, 150, 80) for n, (name, words, kind) in enumerate(steps)]
    boxes += [
        Box(648, 210, "passed or rendered", "OpenAI's dialect as it is,\nothers' rewritten", "ours", 200, 80),
        Box(330, 210, "answer", "counts, watches silence,\nends with [DONE] or an error", "ours", 220, 80),
        Box(90, 210, "caller", "whole or streamed", "theirs", 130, 60),
        Box(330, 330, "tally, journal, escrow", "usage written in batches, cost settled once", "kept", 290, 56),
    ]
    arrows = [Arrow(((165 + 186 * n, 60), (201 + 186 * n, 60))) for n in range(len(steps) - 1)]
    arrows += [
        Arrow(((834, 100), (834, 210), (748, 210)), "nothing is sent before\nits first byte", (834, 240)),
        Arrow(((548, 210), (440, 210))),
        Arrow(((220, 210), (155, 210))),
        Arrow(((330, 250), (330, 302)), "once it is over", (390, 280)),
        Arrow(((90, 180), (90, 100))),
    ]
    return draw("The path of a chat request", 940, 380, boxes, arrows)


DRAWINGS = {"parts.svg": draw_parts, "job.svg": draw_job, "chat.svg": draw_chat}

if __name__ == "__main__":
    for name, make in DRAWINGS.items():
        (PICTURES / name).write_text(make())
