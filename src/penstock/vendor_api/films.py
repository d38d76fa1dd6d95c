"""Orders for films in the neutral params: read within the terms of one model, with a warning for each change."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.catalog.model import Expectation, GenerationModel, expect_anything
from penstock.catalog.video import FRAMES, SHORT_SIDE, VideoParams, film_size
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import UpstreamRejected
from penstock.vendor_api.generation import Done, Failed, GivenFile, Order

FIRST, LAST = FRAMES
MEGABYTE: Final = 1024 * 1024
PICTURES: Final = ("image/jpeg", "image/png", "image/webp")
SIMILAR_RATIO: Final = 1.1
"""Factor by which the ratios of a frame and a film may differ without being another shape."""
EXAMPLE: Final[Mapping[str, Any]] = {
    "prompt": "The paper boat drifts away",
    "frame_images": [{"url": "https://example.com/boat.png", "role": "first_frame"}],
}


class Unfit(Exception):
    """An order that the vendor's model cannot make. Nothing was sent."""

    def __init__(self, param: str, problem: str) -> None:
        super().__init__(problem)
        self.failure = Failed(UpstreamRejected(f"`{param}`: {problem}", param=param))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmTerms:
    """Inputs and values that one of a vendor's models takes."""

    title: str
    seconds: Sequence[int]
    usual: int | None = None  # the length that is ordered if the caller names none; None leaves it to the vendor
    ratios: Sequence[str] = ("16:9", "9:16")
    resolutions: Sequence[str] = ("720p", "1080p")
    ignored: frozenset[str] = frozenset()  # params that it has no place for
    frames: Sequence[str] = ()  # roles that it takes
    last_alone: bool = False  # it takes a last frame without a first one
    references: int = 0
    modes: Sequence[str] = ()  # modes of a film that it takes
    own_films: bool = False  # it takes only films that it made itself
    fixed: Mapping[str, int] = field(default_factory=dict[str, int])  # length by input, such as {"input_references": 8}
    frame_rules: bool = False  # the first frame sets the ratio
    pads: bool = False  # it pads a first frame of another ratio
    most_prompt: int = 6000
    needs_prompt: bool = False
    pictures: Sequence[str] = PICTURES
    picture_bytes: int = 20 * MEGABYTE
    picture_side: int = 0  # fewest pixels of a side
    picture_shape: float = math.inf  # the longer side, divided by the shorter one
    films: Sequence[str] = ("video/mp4",)
    film_bytes: int = 200 * MEGABYTE
    film_seconds: tuple[float, float] = (0.0, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """A film as it is to be ordered."""

    prompt: str | None
    first: StoredFile | None
    last: StoredFile | None
    references: tuple[StoredFile, ...]
    video: StoredFile | None  # with an origin only if it is the vendor's own, so that its id means something there
    mode: str | None
    seconds: int | None
    ratio: str | None
    resolution: str | None
    rest: Mapping[str, Any]  # negative_prompt, generate_audio, seed
    warnings: tuple[str, ...]

    @property
    def expected(self) -> dict[str, Any]:
        """Return the properties of the result, to be kept in the operation."""
        if self.video is not None:
            return {}
        size = {}
        if self.ratio and self.resolution:
            width, height = film_size({"aspect_ratio": self.ratio, "resolution": self.resolution})
            size = {"width": width, "height": height}
        return {**size, "seconds": self.seconds}

    def renamed(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the prompt and the rest by the vendor's names."""
        values = {"prompt": self.prompt, **self.rest}
        return {names[name]: value for name, value in values.items() if name in names and value is not None}


def film_model(model_id: str, title: str, params: type[VideoParams] = VideoParams, *, seeded: bool) -> GenerationModel:
    """Return a model that takes the neutral params of films."""
    seed = "seed" if seeded else None
    return GenerationModel(model_id, "video", title, params, EXAMPLE, expect_anything, seed_param=seed)


def expect_kept(done: Done | Failed | Any, operation: Mapping[str, Any]) -> Any:
    """Return the end of an order with the expectation that its operation keeps, if it keeps one."""
    kept = operation.get("expected")
    return replace(done, expected=Expectation(**kept)) if isinstance(done, Done) and kept is not None else done


def read_film(order: Order, terms: FilmTerms) -> Film:
    """Return the film that an order asks for. Raise `Unfit` for anything that cannot be approximated."""
    params, reader = order.params, _Reader(order, terms)
    reader.check_prompt()
    first, last = reader.frames()
    references, video = reader.references(), reader.video()
    reader.check_together(first or last, references, video)
    ratio = reader.ratio(first or last)
    return Film(
        prompt=params.get("prompt") or None,
        first=first,
        last=last,
        references=references,
        video=video,
        mode=params.get("mode") if video else None,
        seconds=reader.seconds(),
        ratio=ratio,
        resolution=reader.resolution(),
        rest=reader.rest(),
        warnings=tuple(reader.warnings),
    )


@dataclass(slots=True)
class _Reader:
    order: Order
    terms: FilmTerms
    warnings: list[str] = field(default_factory=list[str])

    def check_prompt(self) -> None:
        prompt, terms = self.order.params.get("prompt") or "", self.terms
        if len(prompt) > terms.most_prompt:
            raise Unfit("prompt", f"{terms.title} takes at most {terms.most_prompt} characters, got {len(prompt)}.")
        if terms.needs_prompt and not prompt:
            raise Unfit("prompt", f"{terms.title} needs a prompt.")

    def frames(self) -> tuple[StoredFile | None, StoredFile | None]:
        """Return the first and the last frame."""
        found: dict[str, StoredFile] = {}
        for number, (given, role) in enumerate(_roles(self.order.given("frame_images"))):
            if role not in self.terms.frames:
                wanted = " and ".join(f"`{each}`" for each in self.terms.frames) or "no frames"
                raise Unfit(f"frame_images.{number}.role", f"{self.terms.title} takes {wanted}, got `{role}`.")
            self._check_picture(f"frame_images.{number}", given)
            found[role] = given
        if LAST in found and FIRST not in found and not self.terms.last_alone:
            raise Unfit("frame_images", f"{self.terms.title} takes a `last_frame` only together with a `first_frame`.")
        return found.get(FIRST), found.get(LAST)

    def references(self) -> tuple[StoredFile, ...]:
        given, terms = self.order.given("input_references"), self.terms
        if len(given) > terms.references:
            allowed = f"at most {terms.references} pictures" if terms.references else "no references"
            raise Unfit("input_references", f"{terms.title} takes {allowed}, got {len(given)}.")
        for number, each in enumerate(given):
            self._check_picture(f"input_references.{number}", each.file)
        return tuple(each.file for each in given)

    def video(self) -> StoredFile | None:
        """Return the film to continue or to edit."""
        mode, terms = self.order.params.get("mode"), self.terms
        given = self.order.given("video")
        if not given:
            return None
        file = given[0].file if self.order.owns(given[0].file) else replace(given[0].file, origin=None)
        if mode not in terms.modes:
            allowed = " or ".join(f"`{each}`" for each in terms.modes)
            problem = f"it takes films only to {allowed}" if allowed else "it takes no films"
            raise Unfit("mode" if allowed else "video", f"{terms.title} cannot {mode} a film: {problem}.")
        if terms.own_films and file.origin is None:
            problem = "takes only films that it made itself, with the same account: give the job that made the film."
            raise Unfit("video", f"{terms.title} {problem}")
        if not terms.own_films:
            self._check_film(file)
        return file

    def check_together(
        self, frame: StoredFile | None, references: Sequence[StoredFile], video: StoredFile | None
    ) -> None:
        if references and frame:
            raise Unfit("input_references", f"{self.terms.title} takes either references or frames, not both.")
        if video and (frame or references):
            name = "frame_images" if frame else "input_references"
            raise Unfit(name, f"{self.terms.title} takes no pictures together with a film.")

    def seconds(self) -> int | None:
        """Return the length to order: the nearest one, the longer of two."""
        params, terms = self.order.params, self.terms
        if "video" in params:
            if params.get("duration") != terms.fixed.get("video"):
                self._ignore("duration")
            return None
        fixed = next((length for name, length in terms.fixed.items() if params.get(name)), None)
        wanted = params.get("duration")
        if wanted is None:
            return fixed or terms.usual
        allowed = terms.seconds if fixed is None else (fixed,)
        nearest = min(allowed, key=lambda length: (abs(length - wanted), -length))
        if nearest != wanted:
            self._replace("duration", f"{wanted:g}", f"{nearest} seconds were requested")
        return nearest

    def ratio(self, frame: StoredFile | None) -> str | None:
        """Return the ratio to order: the given one, or the nearest one to the first frame."""
        wanted, terms = self.order.params.get("aspect_ratio"), self.terms
        if "video" in self.order.params or (frame is not None and terms.frame_rules):
            source = "given film" if "video" in self.order.params else "frame"
            self._ignore("aspect_ratio", f"has no effect: the result has the ratio of the {source}")
            return None
        if wanted is not None and wanted not in terms.ratios:
            allowed = ", ".join(terms.ratios)
            raise Unfit("aspect_ratio", f"{terms.title} makes {allowed}, got {wanted}.")
        if frame is None or not frame.height:
            return wanted
        shape = frame.width / frame.height
        ratio = wanted or min(terms.ratios, key=lambda each: _distance(_shape(each), shape))
        if _distance(_shape(ratio), shape) > math.log(SIMILAR_RATIO):
            self._fit_frame(frame, ratio, is_wanted=wanted is not None)
        return ratio

    def _fit_frame(self, frame: StoredFile, ratio: str, *, is_wanted: bool) -> None:
        size = f"{frame.width} x {frame.height}"
        if self.terms.pads or not is_wanted:
            way = "padded" if self.terms.pads else "cropped"
            self.warnings.append(f"The frame has {size} pixels and is {way} to {ratio} by {self.terms.title}.")
            return
        advice = "Leave `aspect_ratio` out, or give a frame of that ratio."
        raise Unfit("aspect_ratio", f"{ratio} contradicts the frame of {size} pixels. {advice}")

    def resolution(self) -> str | None:
        """Return the resolution to order: the nearest one."""
        wanted, allowed = self.order.params.get("resolution"), self.terms.resolutions
        if wanted is None or wanted in allowed:
            return wanted
        if not allowed or "video" in self.order.params:
            self._ignore("resolution")
            return None
        nearest = min(allowed, key=lambda each: abs(math.log(SHORT_SIDE[each] / SHORT_SIDE[wanted])))
        self._replace("resolution", wanted, f"{nearest} was requested")
        return nearest

    def rest(self) -> dict[str, Any]:
        """Return the params that the vendor takes or leaves."""
        found = {name: self.order.params.get(name) for name in ("negative_prompt", "generate_audio", "seed")}
        for name in found.keys() & self.terms.ignored:
            self._ignore(name)
        return {name: value for name, value in found.items() if value is not None and name not in self.terms.ignored}

    def _check_picture(self, param: str, file: StoredFile) -> None:
        terms = self.terms
        if file.content_type not in terms.pictures:
            raise Unfit(param, f"{terms.title} takes {_list_types(terms.pictures)}, got {file.content_type}.")
        _check_bytes(param, file, terms.title, terms.picture_bytes)
        short, long = sorted((file.width, file.height))
        if short < terms.picture_side or long > short * terms.picture_shape:
            wanted = f"pictures of at least {terms.picture_side} pixels a side"
            wanted += (
                "" if math.isinf(terms.picture_shape) else f", up to {terms.picture_shape:g} times as long as wide"
            )
            raise Unfit(param, f"{terms.title} takes {wanted}, got {file.width} x {file.height}.")

    def _check_film(self, file: StoredFile) -> None:
        terms, seconds = self.terms, file.duration_seconds
        if file.content_type not in terms.films:
            raise Unfit("video", f"{terms.title} takes {_list_types(terms.films)}, got {file.content_type}.")
        _check_bytes("video", file, terms.title, terms.film_bytes)
        least, most = terms.film_seconds
        if seconds is not None and not least <= seconds <= most + 0.1:
            raise Unfit("video", f"{terms.title} takes films of {least:g} to {most:g} seconds, got {seconds:.1f}.")

    def _ignore(self, name: str, reason: str = "") -> None:
        value = self.order.params.get(name)
        if value is None or (name == "generate_audio" and value is False):
            return
        shown = f" {value}" if name in ("aspect_ratio", "resolution", "seed") else ""
        end = reason or f"is not supported by {self.terms.title} here and was ignored"
        self.warnings.append(f"`{name}`{shown} {end}.")

    def _replace(self, name: str, value: str, instead: str) -> None:
        self.warnings.append(f"`{name}` {value} is not supported by {self.terms.title}: {instead} instead.")


def _roles(given: Sequence[GivenFile]) -> Iterator[tuple[StoredFile, str]]:
    for each in given:
        yield each.file, each.role or FIRST


def _shape(ratio: str) -> float:
    wide, _, high = ratio.partition(":")
    return int(wide) / int(high)


def _distance(one: float, other: float) -> float:
    return abs(math.log(one / other))


def _list_types(types: Sequence[str]) -> str:
    return ", ".join(name.partition("/")[2].upper() for name in types)


def _check_bytes(param: str, file: StoredFile, title: str, most: int) -> None:
    if file.bytes > most:
        allowed = f"at most {most / MEGABYTE:g} MB"
        raise Unfit(param, f"{title} takes {allowed}, got {file.bytes / MEGABYTE:.1f} MB.")
