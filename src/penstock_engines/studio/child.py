"""The child process of one order: limits itself, runs the engine, and reports progress on standard output."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from penstock_engines.product import Product, ReportProgress, Unable
from penstock_sandbox import sandbox

PACKAGE = Path(__file__).parents[1]  # in an editable install, it is outside of the interpreter's folders
NICENESS = 15  # answers of the gateway go first
FRAMES = ("first_frame", "last_frame")
KINDS: Mapping[str, str] = MappingProxyType(
    {".mp4": "video"}
    | dict.fromkeys((".mp3", ".wav", ".opus", ".flac"), "audio")
    | dict.fromkeys((".json", ".txt", ".srt", ".vtt"), "text")
    | dict.fromkeys((".fbx", ".glb", ".obj", ".stl", ".usdz", ".zip"), "model")
)
"""Kind of an output by its file's suffix. Others are pictures."""


def main() -> None:
    """Read one order as a line of JSON from standard input, and make it. End when the input closes."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # native code may print
    task: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    offered = sandbox.survey_forked()  # before there are threads
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit(task["seconds"], task["memory_mb"])
    _confine(task, offered)
    _send(output, _work(task, lambda share: _send(output, {"progress": round(share, 4)})))
    os._exit(0)  # without waiting for native threads


def _work(task: Mapping[str, Any], report: ReportProgress) -> dict[str, Any]:
    try:
        product = ENGINES[task["engine"]](task, Path(task["folder"]), Path(task["weights"]), report)
    except Unable as error:
        return _failure("unable", str(error))
    except Exception as error:  # noqa: BLE001  any error fails the order
        if isinstance(error, MemoryError) or _is_short_of_memory(task["memory_mb"]):
            return _failure("out_of_memory", "The built-in engine ran out of memory.", repr(error))
        return _failure("crashed", "The built-in engine failed.", repr(error))
    return {
        "status": "succeeded",
        "outputs": list(_list_outputs(product)),
        "seed": product.seed,
        "warnings": product.warnings,
    }


def _list_outputs(product: Product) -> Iterator[dict[str, str]]:
    for path in (product.primary, *product.more):
        yield {"name": path.name, "kind": KINDS.get(path.suffix, "image"), "role": "primary"}
    if product.preview is not None:
        yield {"name": product.preview.name, "kind": "image", "role": "preview"}


def _make_model(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.inflate.model_engine import ModelWish, make_model  # noqa: PLC0415  only the requested engine

    wish = ModelWish(picture=Path(task["inputs"]["file"]), **task["wish"])
    return _finish_model(task, make_model(wish, folder, weights, report), folder)


def _make_model_of_prompt(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.inflate.text_engine import TextWish, make_model_of_prompt  # noqa: PLC0415

    return _finish_model(task, make_model_of_prompt(TextWish(**task["wish"]), folder, weights, report), folder)


def _make_model_of_views(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.hull.hull_engine import ViewsWish, make_model_of_views  # noqa: PLC0415

    wish = ViewsWish(pictures={side: Path(path) for side, path in task["inputs"].items()}, **task["wish"])
    return _finish_model(task, make_model_of_views(wish, folder, weights, report), folder)


def _finish_model(task: Mapping[str, Any], product: Product, folder: Path) -> Product:
    """Pair the triangles of a model, if its order asks for faces of four corners."""
    if not task.get("quads"):
        return product
    from penstock_engines.mesh.remesh_engine import pair_faces  # noqa: PLC0415

    return pair_faces(product, folder)


def _remesh(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.mesh.remesh_engine import RemeshWish, remesh  # noqa: PLC0415

    del weights
    return remesh(RemeshWish(mesh=Path(task["inputs"]["mesh"]), **task["wish"]), folder, report)


def _convert(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.mesh.convert_engine import ConvertWish, convert  # noqa: PLC0415

    del weights
    return convert(ConvertWish(mesh=Path(task["inputs"]["mesh"]), **task["wish"]), folder, report)


def _make_video(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.cinema.video_engine import VideoWish, make_video  # noqa: PLC0415

    return make_video(VideoWish(**task["wish"]), folder, weights, report)


def _make_pictures(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.sketch.picture_engine import PictureWish, make_pictures  # noqa: PLC0415

    return make_pictures(PictureWish(**task["wish"]), folder, weights, report)


def _make_still_film(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.still.still_engine import StillWish, make_still_film  # noqa: PLC0415

    first, last = (Path(task["inputs"][name]) if name in task["inputs"] else None for name in FRAMES)
    return make_still_film(StillWish(first=first, last=last, **task["wish"]), folder, weights, report)


def _make_turntable(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.turntable.turntable_engine import TurntableWish, make_turntable  # noqa: PLC0415

    del weights
    return make_turntable(TurntableWish(mesh=Path(task["inputs"]["mesh"]), **task["wish"]), folder, report)


def _make_speech(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.speech.orders import make_speech  # noqa: PLC0415

    del weights  # the voice is in its package
    return make_speech(task["wish"], folder, report)


def _make_transcript(task: Mapping[str, Any], folder: Path, weights: Path, report: ReportProgress) -> Product:
    from penstock_engines.speech.orders import make_transcript  # noqa: PLC0415

    return make_transcript(task["wish"], Path(task["inputs"]["audio"]), folder, weights, report)


ENGINES: Mapping[str, Callable[[Mapping[str, Any], Path, Path, ReportProgress], Product]] = {
    "inflate": _make_model,
    "inflate_text": _make_model_of_prompt,
    "hull": _make_model_of_views,
    "cinema": _make_video,
    "sketch": _make_pictures,
    "still": _make_still_film,
    "remesh": _remesh,
    "convert": _convert,
    "turntable": _make_turntable,
    "hibari": _make_speech,
    "whisper": _make_transcript,
}


def _failure(code: str, message: str, detail: str | None = None) -> dict[str, Any]:
    return {"status": "failed", "error": {"code": code, "message": message}, "detail": detail}


def _is_short_of_memory(memory_mb: int) -> bool:
    """Return whether the limit was nearly reached. Native code reports a failed allocation in many ways."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmPeak:"):
                return int(line.split()[1]) > memory_mb * 1024 * 0.9
    return False


def _send(output: BinaryIO, message: Mapping[str, Any]) -> None:
    output.write(json.dumps(message).encode() + b"\n")


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _limit(seconds: float, memory_mb: int) -> None:
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not on every platform
    import signal  # noqa: PLC0415

    os.nice(NICENESS)
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # SIGALRM ends the process if its parent is frozen
    with suppress(ValueError, OSError):  # a lower limit is already set, or the platform has none
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))


def _confine(task: Mapping[str, Any], offered: sandbox.Confinement) -> None:
    """Confine this process to its libraries, weights and order, as it decodes the caller's picture."""
    machine = ("/proc/cpuinfo", "/proc/meminfo", f"/proc/{os.getpid()}", "/sys/devices", "/dev/urandom")
    weights = Path(task["weights"])
    # Landlock needs the targets of links, too.
    linked = [str(path.resolve()) for path in weights.iterdir()] if weights.is_dir() else []
    readable = sandbox.library_folders(str(PACKAGE), str(weights), *linked, *task["inputs"].values(), *machine)
    sandbox.restrain(offered, readable=readable, writable=(task["folder"], os.devnull))


if __name__ == "__main__":
    main()
