"""The light of a scene: the effect of hour, weather and requested colour on every painted colour."""

import math
from dataclasses import dataclass, replace

from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.script import Script, Time, Weather

SNOW: Colour = (238, 244, 252)


@dataclass(frozen=True, slots=True)
class Light:
    """Colours as they are seen, except `key`, which is white as it looks in this light."""

    zenith: Colour
    middle: Colour
    horizon: Colour
    key: Colour
    sun: Colour
    sun_height: float
    """Height above the horizon, as a share of the sky."""
    darkness: float = 0.0
    """Brightness of lamps and windows: 0 by day, 1 at night."""
    stars: float = 0.0
    haze: float = 0.55
    """Share of the far distance that is lost in air."""
    clouds: float = 0.25
    shine: float = 1.0
    """Visibility of sun or moon."""
    snow: float = 0.0
    wet: float = 0.0
    wind: float = 1.0

    @property
    def air(self) -> Colour:
        """The colour that far things fade into."""
        return mix(self.horizon, self.middle, 0.35)

    def shade(self, colour: Colour, distance: float = 0.0) -> Colour:
        """Return a colour as it looks in this light. Distance 0 is near, 1 at the horizon."""
        red, green, blue = (round(part * key / 255) for part, key in zip(colour, self.key, strict=True))
        return mix((red, green, blue), self.air, 1 - math.exp(-2.6 * self.haze * distance))

    def ground(self, colour: Colour, distance: float = 0.0) -> Colour:
        """Like `shade`, but with snow on it or darkened by rain."""
        wetted = mix(colour, (26, 30, 38), 0.3 * self.wet)
        return self.shade(mix(wetted, SNOW, 0.88 * self.snow), distance)

    def lamp(self, colour: Colour, unlit: Colour, distance: float = 0.0) -> Colour:
        """Return the colour of a window or lamp: `unlit` by day, its own light in the dark."""
        far = 1 - math.exp(-1.2 * self.haze * distance)
        return mix(self.shade(unlit, distance), mix(colour, self.air, far), self.darkness)


HOURS: dict[Time, Light] = {
    Time.DAWN: Light(
        (84, 124, 188), (226, 170, 188), (255, 216, 176), (240, 212, 206), (255, 240, 212), 0.2, 0.18, 0.06, 0.55
    ),
    Time.DAY: Light((44, 122, 214), (112, 186, 240), (208, 236, 248), (255, 252, 244), (255, 250, 226), 0.62),
    Time.SUNSET: Light(
        (66, 56, 126), (232, 104, 100), (255, 196, 108), (238, 168, 142), (255, 232, 170), 0.15, 0.35, 0.05, 0.42
    ),
    Time.DUSK: Light(
        (26, 34, 86), (96, 80, 150), (234, 142, 144), (150, 130, 178), (250, 244, 226), 0.55, 0.8, 0.5, 0.6, shine=0.8
    ),
    Time.NIGHT: Light(
        (7, 13, 40), (18, 38, 84), (48, 82, 132), (92, 112, 168), (246, 246, 230), 0.6, 1.0, 1.0, 0.5, 0.18, shine=0.9
    ),
}


@dataclass(frozen=True, slots=True)
class Veil:
    """The change that a weather makes to the light of an hour."""

    grey: Colour
    cover: float
    """Share of the sky that turns grey."""
    key: float
    haze: float
    clouds: float
    shine: float
    snow: float = 0.0
    wet: float = 0.0
    wind: float = 1.0


WEATHERS: dict[Weather, Veil] = {
    Weather.CLOUDS: Veil((186, 196, 208), 0.28, 0.94, 0.6, 0.62, 0.75, wind=1.3),
    Weather.RAIN: Veil((120, 134, 152), 0.7, 0.8, 0.68, 0.85, 0.1, wet=1.0, wind=1.6),
    Weather.STORM: Veil((58, 64, 84), 0.82, 0.66, 0.5, 0.95, 0.0, wet=1.0, wind=3.0),
    Weather.SNOW: Veil((164, 180, 206), 0.72, 0.98, 0.5, 0.75, 0.25, snow=1.0, wind=0.8),
    Weather.FOG: Veil((200, 206, 212), 0.6, 0.92, 1.5, 0.4, 0.35, wind=0.5),
    Weather.WIND: Veil((170, 190, 214), 0.12, 1.0, 0.5, 0.5, 1.0, wind=3.2),
}


def make_light(script: Script) -> Light:
    """Return the light of the hour, changed by the weather and by the colour that the prompt asks for."""
    light = HOURS[script.time]
    veil = WEATHERS.get(script.weather)
    if veil is not None:
        light = _cover(light, veil)
    return light if script.tint is None else _colour(light, script.tint)


def _cover(light: Light, veil: Veil) -> Light:
    brightness = sum(light.key) / 765
    grey = mix((0, 0, 0), veil.grey, brightness**1.3)
    # Some of the hour's own colour stays in the cloud, or all rainy hours would look alike.
    grey = mix(grey, light.middle, 0.22)
    lit = mix((0, 0, 0), mix(light.key, (235, 240, 248), 0.25 * veil.cover * brightness), veil.key)
    return replace(
        light,
        zenith=mix(light.zenith, mix(grey, (0, 0, 0), 0.18), veil.cover),
        middle=mix(light.middle, grey, veil.cover),
        horizon=mix(light.horizon, mix(grey, (255, 255, 255), 0.12 * brightness), veil.cover * 0.85),
        key=lit,
        darkness=min(1.0, light.darkness + 0.3 * veil.wet),
        stars=light.stars * (1 - veil.cover) ** 2,
        haze=max(light.haze, veil.haze),
        clouds=veil.clouds,
        shine=light.shine * veil.shine,
        snow=veil.snow,
        wet=veil.wet,
        wind=veil.wind,
    )


def _colour(light: Light, tint: Colour) -> Light:
    """Let the tint take over the sky, at the hour's brightness, and a part of the light."""
    brightness = 0.35 + 0.65 * sum(light.middle) / 765
    sky = mix((0, 0, 0), tint, brightness)
    return replace(
        light,
        zenith=mix(light.zenith, mix(sky, (0, 0, 0), 0.3), 0.6),
        middle=mix(light.middle, sky, 0.62),
        horizon=mix(light.horizon, mix(sky, (255, 255, 255), 0.3), 0.5),
        key=mix(light.key, mix(light.key, tint, 0.6), 0.4),
        sun=mix(light.sun, tint, 0.15),
    )
