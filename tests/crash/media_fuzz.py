"""Send hostile files by the thousand through the workshop, as uploads and outputs go.

python tests/crash/media_fuzz.py --minutes 60

Sound pictures, models and videos are damaged in ways that readers stumble over: numbers made huge, pieces repeated,
moved, mixed and cut, with checksums and lengths put right so that the damage is read at all. Every file must be
accepted or refused in our own words. A process that dies or reaches a limit is contained, and counted. Wrong are:

unclear   an error that is not our own, so that a caller would be told nothing
hang      an answer later than every limit
escape    a wall that does not stand when tried, a process left behind, or a file that was touched

`--seed` and `--first` repeat a case; each wrong one is kept in `--keep`. Ends with 1 if anything was wrong.
"""

import argparse
import asyncio
import io
import json
import os
import random
import re
import socket
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from walls import try_walls

from penstock.domain.job_errors import JobError
from penstock.inspection.images_and_video import inspect_image, inspect_picture, inspect_video
from penstock.inspection.models import inspect_model
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed
from penstock.simulator.samples import make_model, make_preview, make_video
from penstock_sandbox.sandbox import survey

CPU_SECONDS = 10
SECONDS = 30.0
LATE_SECONDS = 20.0
"""How much later than its limits an answer may come on a busy machine."""
TRY_EVERY = 200
NUMBERS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)

# -- sound files


def draw(kind: str, size: tuple[int, int], mode: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise(size, 60).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def sound_files() -> Mapping[str, list[bytes]]:
    frames = [Image.effect_noise((40, 30), spread).convert("RGB") for spread in (20, 60, 90)]
    moving = {"save_all": True, "append_images": frames[1:], "duration": 50}
    animated = {kind: io.BytesIO() for kind in ("PNG", "WEBP")}
    for kind, buffer in animated.items():
        frames[0].save(buffer, kind, **moving)
    modes = ("RGB", "RGBA", "P", "L", "1", "I;16")
    return {
        "png": [draw("PNG", (60, 44), mode) for mode in modes] + [animated["PNG"].getvalue(), make_preview(3)],
        "jpeg": [
            *(draw("JPEG", (60, 44), mode) for mode in ("RGB", "L", "CMYK")),
            draw("JPEG", (200, 120), "RGB", progressive=True),
            draw("JPEG", (64, 64), "RGB", optimize=True, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0", comment=b"x" * 50),
        ],
        "webp": [
            *(draw("WEBP", (60, 44), mode) for mode in ("RGB", "RGBA")),
            draw("WEBP", (60, 44), "RGBA", lossless=True),
            animated["WEBP"].getvalue(),
        ],
        "glb": [make_model(number, 48, texture=bool(number % 2)) for number in range(3)],
        "mp4": [make_video(64, 48, 1, 1), make_video(160, 90, 2, 2)],
    }


# -- damage


def damage(data: bytes, dice: random.Random) -> bytes:
    """Do some of everything that can happen to bytes."""
    mutated = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3, 5, 8))):
        place, length = dice.randrange(len(mutated)), dice.choice((1, 2, 4, 8, 40, 400))
        other = dice.randrange(len(mutated))
        piece = mutated[other : other + length]
        number = dice.choice(NUMBERS).to_bytes(4, dice.choice(("little", "big")))
        start, end, new = dice.choice(
            (
                (place, place + 1, dice.randbytes(1)),
                (place, place + 4, number),
                (place, place + length, b""),
                (place, place, piece * dice.choice((1, 2, 50))),
                (place, place + length, piece),
                (place, place + length, dice.randbytes(length)),
                (place + length * 100, None, b""),
            )
        )
        mutated[start:end] = new
        if not mutated:
            return b"\0"
    return bytes(mutated)


def mix(data: bytes, other: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))] + other[dice.randrange(len(other)) :]


def damage_png(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Damage chunks and put their lengths and checksums right."""
    chunks: list[tuple[bytes, bytes]] = []
    position = 8
    while position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        chunks.append((data[position + 4 : position + 8], data[position + 8 : position + 8 + length]))
        position += 12 + length
    for _ in range(dice.choice((1, 2, 4))):
        number = dice.randrange(len(chunks))
        kind, body = chunks[number]
        match dice.randrange(6):
            case 0:
                chunks[number] = kind, damage(body or b"\0", dice)
            case 1:
                chunks[number:number] = [(kind, body)] * dice.choice((1, 3, 2000))
            case 2:
                chunks.insert(dice.randrange(len(chunks)), chunks.pop(number))
            case 3:
                names = (b"zTXt", b"iTXt", b"iCCP", b"tRNS", b"PLTE", b"acTL", b"fcTL", b"fdAT", b"eXIf", b"gAMA")
                squeezed = zlib.compress(bytes(dice.choice((10, 10**5, 10**7))))
                chunks.insert(number, (dice.choice(names), b"name\0\0" + squeezed))
            case 4 if kind == b"IDAT":
                raw = zlib.compress(dice.randbytes(50) * dice.choice((1, 1000, 100_000)))
                chunks[number] = kind, raw
            case _:
                chunks[number] = dice.choice(chunks)[0], body
    sums = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return data[:8] + b"".join(sums)


def damage_webp(data: bytes, other: bytes, dice: random.Random) -> bytes:
    damaged = damage(data[12:], dice)
    return b"RIFF" + struct.pack("<I", len(damaged) + 4) + b"WEBP" + damaged


def damage_glb(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Damage the document as text, its numbers above all, and put the lengths right."""
    size = int.from_bytes(data[12:16], "little")
    text, rest = data[20 : 20 + size], data[20 + size :]
    for _ in range(dice.choice((1, 2, 4, 10))):
        found = list(re.finditer(rb"-?\d+(\.\d+)?", text))
        if dice.random() < 0.7 and found:
            spot = dice.choice(found)
            number = dice.choice((b"0", b"-1", b"1e308", b"4294967296", b"9" * 400, b"1", b"2", b"[0,0]", b"null"))
            text = text[: spot.start()] + number + text[spot.end() :]
        elif dice.random() < 0.5:
            text = text.replace(dice.choice((b"{", b"[", b'"', b",")), dice.choice((b"[[", b"{}", b"", b'""')), 1)
        else:
            start = dice.randrange(len(text))
            text = text[:start] + text[start : start + 60] * dice.choice((2, 500)) + text[start:]
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<I4s", len(text), b"JSON") + text + (damage(rest, dice) if dice.random() < 0.3 and rest else rest)
    )
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def damage_mp4(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Damage the index, which says how everything else is read."""
    start = data.index(b"moov") - 4
    end = start + int.from_bytes(data[start : start + 4], "big")
    index = bytearray(data[start:end])
    for _ in range(dice.choice((1, 2, 4))):
        place = dice.randrange(8, len(index) - 4)
        index[place : place + 4] = dice.choice((dice.choice(NUMBERS), dice.getrandbits(32))).to_bytes(4, "big")
    return data[:start] + bytes(index) + data[end:]


CAREFUL: Mapping[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "png": damage_png,
    "jpeg": lambda data, _, dice: data[:2] + damage(data[2:], dice),
    "webp": damage_webp,
    "glb": damage_glb,
    "mp4": damage_mp4,
}


def make_case(files: Mapping[str, list[bytes]], dice: random.Random) -> tuple[str, bytes]:
    kind = dice.choice(("png", "jpeg", "webp", "glb", "mp4"))
    data = dice.choice(files[kind])
    other = dice.choice(files[dice.choice(list(files))])
    choice = dice.random()
    if choice < 0.6:
        return kind, CAREFUL[kind](data, other, dice)
    return kind, damage(data, dice) if choice < 0.9 else mix(data, other, dice)


# -- the run


def descendants() -> int:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    ours, found = {os.getpid()}, 0
    while more := {child for child, parent in parents.items() if parent in ours and child not in ours}:
        ours |= more
        found += len(more)
    return found


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Fuzz:
    """One run."""

    def __init__(self, seed: int, keep: Path, canary: Path) -> None:
        self.seed, self.keep, self.canary = seed, keep, canary
        self.outcomes: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.slowest = 0.0
        self.inputs = ProcessPool(1, seconds=SECONDS, cpu_seconds=CPU_SECONDS)
        self.outputs = ProcessPool(1, seconds=SECONDS, cpu_seconds=CPU_SECONDS, threads=True)
        self.files = sound_files()
        self.listener = socket.create_server(("127.0.0.1", 0))

    async def do(self, number: int) -> None:
        kind, data = make_case(self.files, random.Random(f"{self.seed}/{number}"))  # noqa: S311  to repeat it
        began = time.monotonic()
        outcome = await self._open(kind, data)
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        if took > SECONDS + LATE_SECONDS:
            outcome = "hang"
        self.outcomes[outcome] += 1
        self.by_kind[f"{kind} {outcome}"] += 1
        if outcome in ("unclear", "hang") or outcome.startswith("contained"):
            (self.keep / f"{outcome.replace(' ', '-')}-{self.seed}-{number}.{kind}").write_bytes(data)

    async def _open(self, kind: str, data: bytes) -> str:
        path = self.keep / "case"
        path.write_bytes(data)
        try:
            match kind:
                case "glb":
                    await self.outputs.do("a", inspect_model, path, None)
                case "mp4":
                    await self.outputs.do("a", inspect_video, path, None, None, None)
                case _:
                    await self.inputs.do("a", inspect_image, data)
                    await self.outputs.do("a", inspect_picture, path)
        except JobError as error:
            return "refused" if error.message and "Traceback" not in error.message else "unclear"
        except LimitReached as error:
            return "contained limit" + (": memory" if "memory" in str(error) else ": time")
        except WorkFailed as error:
            return "contained crash" if "crashed" in str(error) else "unclear"
        except Exception as error:  # noqa: BLE001  it is counted
            say(f"{kind}: {error!r}")
            return "unclear"
        return "accepted"

    async def try_walls(self) -> None:
        port = self.listener.getsockname()[1]
        expected = survey()
        for process_pool in (self.inputs, self.outputs):
            found = await process_pool.do("a", try_walls, None, port, str(self.canary))
            reached = {name: what for name, what in found.items() if what.startswith("reached")}
            if found["secret"] or (reached and not expected.missing):
                self.outcomes["escape"] += 1
                say(f"escape: {found}")
        if descendants() > 2 or self.canary.read_bytes() != b"untouched":
            self.outcomes["escape"] += 1
            say(f"escape: a file, or one of {descendants()} processes")

    def report(self, number: int, began: float) -> None:
        spent = (time.monotonic() - began) / 60
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        say(f"{spent:.1f} min, {number} files: {counts}; slowest {self.slowest:.1f} s")


async def run(options: argparse.Namespace) -> int:
    os.environ["PENSTOCK_FUZZ_SECRET"] = "psk_secret"
    keep = options.keep or Path(tempfile.mkdtemp(prefix="media-fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    canary = keep / "canary"
    canary.write_bytes(b"untouched")
    fuzz = Fuzz(options.seed, keep, canary)
    say(f"seed {options.seed}, in force {survey()}, wrong files are kept in {keep}")
    began = reported = time.monotonic()
    number = options.first
    while time.monotonic() - began < options.minutes * 60:
        if number % TRY_EVERY == 0:
            await fuzz.try_walls()
        await fuzz.do(number)
        number += 1
        if time.monotonic() - reported > 60:
            reported = time.monotonic()
            fuzz.report(number - options.first, began)
    await fuzz.inputs.close()
    await fuzz.outputs.close()
    fuzz.listener.close()
    fuzz.report(number - options.first, began)
    say(json.dumps(dict(sorted(fuzz.by_kind.items())), indent=1))
    return 1 if any(fuzz.outcomes[name] for name in ("unclear", "hang", "escape")) else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--keep", type=Path, help="the folder for wrong and contained files")
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
