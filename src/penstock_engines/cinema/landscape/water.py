"""Water: a moving mirror of what stands above the horizon, with waves that catch the light."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness, make_noise

HALF = 2
SINE = ((np.sin(np.arange(256) * 2 * np.pi / 256) + 1) * 42).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Train:
    """One train of waves: each pixel's phase in 256ths of a turn, and its shift by camera and time."""

    phase: NDArray[np.uint8]
    right: float
    away: float
    speed: float


class Water(Plane):
    """Water from a row downward. `calm` 1 is a pond, 0 the open sea."""

    def __init__(
        self,
        view: View,
        light: Light,
        random: Randomness,
        *,
        top: int,
        bottom: int | None = None,
        colour: Colour,
        sun: tuple[float, float],
        calm: float = 0.5,
    ) -> None:
        self._top = top
        self._rows = (view.height if bottom is None else min(view.height, bottom)) - top
        self._view = view
        self._width = view.width
        self._light = light
        self._calm = calm
        self._trains = [
            self._lay_train(random, *spec) for spec in ((0.1, 7.0, 0.5), (-0.2, 12.0, 0.72), (0.34, 19.0, 1.1))
        ]
        self._mirror_x, self._mirror_y, self._swing = self._aim_mirror()
        share = np.linspace(0, 1, -(-self._rows // HALF), dtype=np.float32)[:, None]
        self._keep, self._own = self._mix_colours(share, colour)
        self._glint = self._paint_glints(sun)
        self._trough = self._paint_troughs()

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Mirror, tint, and add the light on the waves."""
        rows = min(self._rows, frame.shape[0] - self._top)
        if rows <= 0:
            return
        waves = self._heave(moment, rows)
        surface = self._mirror(frame, waves)
        target = frame[self._top : self._top + rows]
        target[:] = surface[:rows, : self._width]
        crest = cv2.cvtColor(cv2.LUT(waves, self._crests), cv2.COLOR_GRAY2BGR)
        cv2.add(target, cv2.multiply(crest, self._glint[:rows], scale=1 / 255), dst=target)
        hollow = cv2.cvtColor(cv2.LUT(waves, self._hollows), cv2.COLOR_GRAY2BGR)
        cv2.subtract(target, cv2.multiply(hollow, self._trough[:rows], scale=1 / 255), dst=target)

    def _heave(self, moment: Moment, rows: int) -> NDArray[np.uint8]:
        """Return the height of the surface at each pixel, 0 to 252."""
        total = np.zeros((rows, self._width), np.uint8)
        for train in self._trains:
            turns = train.speed * moment.seconds + train.right * moment.shot.right + train.away * moment.shot.near
            moved = np.add(train.phase[:rows], np.uint8(int(turns * 256) % 256))
            wave = np.asarray(cv2.LUT(moved, SINE), np.uint8)
            np.add(total, wave, out=total)
        return total

    def _mirror(self, frame: Frame, waves: NDArray[np.uint8]) -> Frame:
        rows = -(-waves.shape[0] // HALF)
        above = np.ascontiguousarray(frame[self._top % HALF : self._top : HALF, ::HALF])
        lift = waves[::HALF, ::HALF].astype(np.float32) - np.float32(126)
        x = self._mirror_x[:rows] + lift * self._swing[:rows]
        y = self._mirror_y[:rows] - lift * self._swing[:rows] * np.float32(0.9)
        seen = cv2.remap(above, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        cv2.multiply(seen, self._keep[:rows], dst=seen, scale=1 / 255)
        cv2.add(seen, self._own[:rows], dst=seen)
        whole = cv2.cvtColor(seen, cv2.COLOR_BGR2BGRA)
        large = cv2.resize(whole, (seen.shape[1] * HALF, rows * HALF), interpolation=cv2.INTER_LINEAR)
        return np.asarray(cv2.cvtColor(large, cv2.COLOR_BGRA2BGR), np.uint8)

    def _lay_train(self, random: Randomness, slant: float, count: float, speed: float) -> Train:
        """Return waves on a flat sea in perspective, narrower with distance."""
        down = np.arange(self._rows, dtype=np.float32)[:, None] / np.float32(self._view.unit)
        across = (np.arange(self._width, dtype=np.float32)[None] - np.float32(self._width / 2)) / np.float32(
            self._view.unit
        )
        distance = np.float32(1.0) / (down + np.float32(0.028))
        waver = make_noise(random, self._rows, self._width, (12, 4), 4) * np.float32(1.6)
        turns = count * 0.42 * (distance * 0.55 + across * distance * slant) + waver
        return Train((turns % 1 * 256).astype(np.uint8), count * slant * 0.42, count * 0.8, speed * (1.35 - self._calm))

    def _aim_mirror(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        rows, columns = -(-self._rows // HALF), -(-self._width // HALF)
        x = np.tile(np.arange(columns, dtype=np.float32), (rows, 1))
        down = np.arange(rows, dtype=np.float32)[:, None]
        above = self._top // HALF
        # The mirror is compressed where the sky is shorter than the water.
        squeeze = min(1.0, (above - 2) / max(1, rows))
        y = np.repeat(above - 1 - down * np.float32(squeeze), columns, axis=1)
        swing = (0.02 + down / rows * 0.16) * (1.15 - self._calm) * self._view.unit / 720
        return x, y.astype(np.float32), np.repeat(swing, columns, axis=1).astype(np.float32)

    def _mix_colours(self, share: NDArray[np.float32], colour: Colour) -> tuple[Frame, Frame]:
        """Return, row by row, the factor of the mirror and the water's own colour to add."""
        columns = -(-self._width // HALF)
        light = self._light
        deep = mix(light.shade(colour), light.zenith, 0.2)
        keep = np.clip((0.9 - 0.5 * share**0.8) - 0.1 * (1 - self._calm), 0, 1) - 0.18 * light.wet
        tone = np.array(deep[::-1], np.float32)
        own = (1 - keep)[..., None] * tone
        kept = np.repeat(np.repeat(keep[..., None] * 255, columns, axis=1), 3, axis=2)
        return kept.astype(np.uint8), np.repeat(own, columns, axis=1).astype(np.uint8)

    def _paint_glints(self, sun: tuple[float, float]) -> Frame:
        """Return the brightness of a crest at each pixel: low everywhere, high below the sun."""
        light, view = self._light, self._view
        down = np.arange(self._rows, dtype=np.float32)[:, None] / np.float32(view.unit)
        across = (np.arange(self._width, dtype=np.float32)[None] - np.float32(sun[0])) / np.float32(view.unit)
        low = 1 - light.sun_height
        spread = 0.05 + down * (0.42 + 0.3 * light.sun_height)
        path = np.exp(-((across / spread) ** 2)) * light.shine * (0.35 + 0.65 * low)
        path *= 0.55 + 0.45 * np.exp(-down * 3)
        sparkle = np.array(mix(light.sun, light.horizon, 0.25)[::-1], np.float32)
        base = np.array(mix(light.horizon, light.middle, 0.5)[::-1], np.float32) * 0.3
        near = np.clip(down / 0.05, 0.25, 1)[..., None]
        glint = path[..., None] * sparkle * 1.1 + base * near
        return np.clip(glint, 0, 255).astype(np.uint8)

    def _paint_troughs(self) -> Frame:
        down = np.linspace(0, 1, self._rows, dtype=np.float32)[:, None, None]
        tone = np.array(mix(self._light.air, (30, 40, 60), 0.4)[::-1], np.float32)[None, None]
        depth = np.clip(down * 3, 0.1, 1) * tone * (0.27 - 0.17 * self._calm)
        return np.repeat(np.clip(depth, 0, 255).astype(np.uint8), self._width, axis=1)

    @property
    def _crests(self) -> NDArray[np.uint8]:
        height = np.arange(256, dtype=np.float32)
        edge = 168 + 22 * self._calm
        return np.clip((height - edge) * 255 / 34, 0, 255).astype(np.uint8)

    @property
    def _hollows(self) -> NDArray[np.uint8]:
        height = np.arange(256, dtype=np.float32)
        return np.clip((100 - height) * 255 / 90, 0, 255).astype(np.uint8)
