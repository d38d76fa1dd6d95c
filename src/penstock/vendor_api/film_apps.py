"""Apps for films at services that run the models of others: each has its own names for the neutral params."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.vendor_api.films import Film, FilmTerms, Unfit
from penstock.vendor_api.generation import DataUri


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmApp:
    """One app: what it takes, and its endpoints and field names."""

    terms: FilmTerms
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Paths below the app's own one, by the inputs: `text`, `frame`, `frames`, `references` and `film`."""
    frame: str = "image_url"  # the only frame
    frames: tuple[str, str] = ("image_url", "end_image_url")  # the first and the last one
    references: str = "image_urls"
    film: str = "video_url"
    unit: str | None = ""  # behind the number of seconds, which is then a text; None for a plain number

    def write(self, film: Film) -> tuple[str, dict[str, Any]]:
        """Return the endpoint and the fields of an order. Files are `DataUri` values."""
        inputs, files = self._files(film)
        seconds = film.seconds if self.unit is None or film.seconds is None else f"{film.seconds}{self.unit}"
        asked = {"aspect_ratio": film.ratio, "resolution": film.resolution, "duration": seconds}
        words = {"prompt": film.prompt, **film.rest}
        body = {name: value for name, value in {**words, **asked}.items() if value is not None}
        return self.endpoints.get(inputs, ""), {**body, **files}

    def _files(self, film: Film) -> tuple[str, dict[str, Any]]:
        if film.video is not None:
            return "film", {self.film: DataUri(film.video)}
        if film.references:
            return "references", {self.references: [DataUri(each) for each in film.references]}
        if film.first is not None and film.last is not None:
            first, last = self.frames
            return "frames", {first: DataUri(film.first), last: DataUri(film.last)}
        return ("text", {}) if film.first is None else ("frame", {self.frame: DataUri(film.first)})


def find_app(apps: Mapping[str, FilmApp], model: str, model_id: str) -> FilmApp:
    """Return the app of a route. Raise `Unfit` for one whose fields are not known."""
    if model in apps:
        return apps[model]
    advice = "Declare it as a model of its own, or name one of"
    raise Unfit("model", f"`{model_id}` does not know the fields of `{model}`. {advice} {', '.join(apps)}.")
