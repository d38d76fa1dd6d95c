"""Buildings: houses, towers, shops, lamps, castles, fences and bridges."""

from dataclasses import dataclass

from penstock_engines.cinema.landscape.ridges import add_glow
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness

WARM: Colour = (255, 206, 120)
PANE: Colour = (120, 150, 176)
WALLS: tuple[Colour, ...] = (
    (206, 128, 104),
    (226, 196, 150),
    (150, 164, 176),
    (196, 150, 130),
    (170, 120, 116),
    (222, 212, 196),
)


@dataclass(frozen=True, slots=True)
class Builder:
    """Paints buildings on one sheet, in one light, at one distance."""

    sheet: Sheet
    light: Light
    random: Randomness
    distance: float = 0.0

    @property
    def brush(self) -> Brush:
        """The brush of the sheet."""
        return self.sheet.brush

    def tone(self, colour: Colour) -> Colour:
        """Return a wall's colour in this light."""
        return self.light.shade(colour, self.distance)

    def roof_tone(self, colour: Colour) -> Colour:
        """Return a roof's colour, with snow on it."""
        return self.light.ground(colour, self.distance)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        """Paint an upright rectangle."""
        self.brush.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def glow(self, centre: Point, radius: float, colour: Colour = WARM, strength: float = 0.5) -> None:
        """Paint light around a lamp, in the dark only."""
        add_glow(self.sheet, centre, radius, colour, strength * self.light.darkness)

    def tower(
        self,
        left: float,
        right: float,
        top: float,
        bottom: float,
        wall: Colour,
        *,
        lit: float = 0.5,
        window: Colour = WARM,
    ) -> None:
        """Paint a high block with a grid of windows, a share of which is lit in the dark."""
        self.box(left, top, right, bottom, self.tone(wall))
        edge = left + (right - left) * 0.72
        self.box(edge, top, right, bottom, self.tone(mix(wall, (20, 24, 44), 0.28)))
        self.box(left, top - 0.004, right, top, self.roof_tone(mix(wall, (20, 24, 44), 0.4)))
        cell = 0.017 + 0.012 * (1 - self.distance)
        columns, rows = max(2, round((right - left) / cell)), max(2, round((bottom - top) / cell / 1.3))
        wide, high = (right - left) / columns, (bottom - top) / rows
        for column in range(columns):
            for row in range(rows):
                shines = self.random.random() < lit
                colour = (
                    mix(window, (255, 244, 214), float(self.random.random()) * 0.6)
                    if shines
                    else mix(wall, (16, 24, 48), 0.75)
                )
                pane = self.light.lamp(colour, mix(wall, PANE, 0.6), self.distance)
                x, y = left + wide * (column + 0.25), top + high * (row + 0.28)
                self.box(x, y, x + wide * 0.5, y + high * 0.46, pane)

    def house(self, left: float, foot: float, width: float, height: float, wall: Colour, roof: Colour) -> None:
        """Paint a gabled house with windows, a door and a chimney."""
        right, eaves = left + width, foot - height
        peak = eaves - width * 0.42
        self.box(
            left + width * 0.68, peak - width * 0.02, left + width * 0.8, eaves, self.tone(mix(roof, (70, 50, 50), 0.5))
        )
        self.box(left, eaves, right, foot, self.tone(wall))
        self.box(left + width * 0.74, eaves, right, foot, self.tone(mix(wall, (40, 36, 66), 0.2)))
        over = width * 0.1
        self.brush.polygon(
            [(left - over, eaves + over * 0.3), (left + width / 2, peak), (right + over, eaves + over * 0.3)],
            self.roof_tone(roof),
        )
        self.brush.polygon(
            [(left + width / 2, peak), (right + over, eaves + over * 0.3), (left + width * 0.7, eaves + over * 0.3)],
            self.roof_tone(mix(roof, (30, 24, 50), 0.25)),
        )
        for share in (0.16, 0.56):
            self._window(left + width * share, eaves + height * 0.26, width * 0.2, height * 0.34)
        self.box(
            left + width * 0.4, foot - height * 0.46, left + width * 0.52, foot, self.tone(mix(roof, (50, 34, 30), 0.6))
        )

    def _window(self, x: float, y: float, width: float, height: float) -> None:
        frame = self.tone((240, 236, 228))
        self.box(x - width * 0.12, y - height * 0.1, x + width * 1.12, y + height * 1.1, frame)
        self.box(x, y, x + width, y + height, self.light.lamp(WARM, PANE, self.distance))
        self.box(x + width * 0.46, y, x + width * 0.54, y + height, frame)
        self.glow((x + width / 2, y + height / 2), width * 2.4, WARM, 0.4)

    def shop(self, left: float, foot: float, width: float, height: float, wall: Colour, awning: Colour) -> None:
        """Paint a town house of several floors over a shop with an awning."""
        top, right = foot - height, left + width
        self.box(left, top, right, foot, self.tone(wall))
        self.box(left, top, right, top + 0.012, self.roof_tone(mix(wall, (255, 255, 255), 0.3)))
        self.box(right - width * 0.06, top, right, foot, self.tone(mix(wall, (30, 26, 50), 0.25)))
        floors, columns = max(1, round((height - 0.16) / 0.12)), max(2, round(width / 0.1))
        for floor in range(floors):
            for column in range(columns):
                x = left + width * (column + 0.28) / columns
                y = top + 0.035 + (height - 0.17) * floor / floors
                lit = self.random.random() < 0.55
                pane = self.light.lamp(WARM if lit else (40, 46, 70), PANE, self.distance)
                self.box(
                    x - 0.006,
                    y - 0.006,
                    x + width * 0.44 / columns + 0.006,
                    y + 0.066,
                    self.tone(mix(wall, (255, 255, 255), 0.45)),
                )
                self.box(x, y, x + width * 0.44 / columns, y + 0.06, pane)
        self._shop_front(left, right, foot, wall, awning)

    def _shop_front(self, left: float, right: float, foot: float, wall: Colour, awning: Colour) -> None:
        width = right - left
        self.box(left + width * 0.06, foot - 0.12, right - width * 0.06, foot, self.tone(mix(wall, (40, 30, 34), 0.6)))
        glass = self.light.lamp((255, 224, 160), (150, 176, 190), self.distance)
        self.box(left + width * 0.1, foot - 0.1, left + width * 0.6, foot - 0.018, glass)
        self.box(left + width * 0.68, foot - 0.1, left + width * 0.88, foot, mix(glass, self.tone((60, 44, 40)), 0.35))
        self.glow((left + width * 0.35, foot - 0.05), width * 0.7, (255, 214, 140), 0.4)
        stripes = 8
        for stripe in range(stripes):
            x, step = left + width * 0.04 + width * 0.92 * stripe / stripes, width * 0.92 / stripes
            colour = self.roof_tone(awning if stripe % 2 else (244, 238, 226))
            self.brush.polygon(
                [
                    (x + step * 0.2, foot - 0.145),
                    (x + step * 0.9, foot - 0.145),
                    (x + step, foot - 0.1),
                    (x, foot - 0.1),
                ],
                colour,
            )
            self.brush.ellipse((x + step / 2, foot - 0.1), (step / 2, 0.009), colour)

    def lamp_post(self, x: float, foot: float, height: float) -> None:
        """Paint a street lamp with its pool of light."""
        iron = self.tone((52, 56, 66))
        self.brush.limb([(x, foot), (x, foot - height)], [height * 0.035, height * 0.02], iron)
        self.box(x - height * 0.04, foot - height * 0.03, x + height * 0.04, foot, iron)
        head = (x, foot - height * 1.03)
        self.brush.ellipse(
            head, (height * 0.05, height * 0.065), self.light.lamp((255, 232, 170), (220, 226, 226), self.distance)
        )
        self.box(x - height * 0.06, foot - height * 1.11, x + height * 0.06, foot - height * 1.09, iron)
        self.glow(head, height * 0.75, (255, 208, 130), 0.65)
        self.glow((x, foot), height * 0.4, (255, 200, 120), 0.3)

    def keep(
        self, left: float, foot: float, width: float, height: float, wall: Colour, roof: Colour | None = None
    ) -> None:
        """Paint a castle's round tower, with battlements or a pointed roof."""
        top, right = foot - height, left + width
        self.box(left, top, right, foot, self.tone(wall))
        self.box(left + width * 0.62, top, right, foot, self.tone(mix(wall, (36, 34, 70), 0.3)))
        self.box(
            left - width * 0.08,
            top - width * 0.1,
            right + width * 0.08,
            top + width * 0.12,
            self.tone(mix(wall, (255, 240, 220), 0.12)),
        )
        for step in range(4):
            x = left - width * 0.08 + width * 1.16 * step / 3.55
            self.box(x, top - width * 0.26, x + width * 0.18, top - width * 0.08, self.roof_tone(wall))
        if roof is not None:
            self._crown(left, top, width, roof)
        for share in (0.25, 0.55):
            x, y = left + width * 0.36, top + height * share
            self.box(x, y, x + width * 0.13, y + width * 0.34, self.light.lamp(WARM, (50, 46, 60), self.distance))
            self.glow((x + width * 0.06, y + width * 0.15), width * 0.7, WARM, 0.35)

    def _crown(self, left: float, top: float, width: float, roof: Colour) -> None:
        """Paint a pointed roof with a flag."""
        right = left + width
        self.brush.polygon(
            [
                (left - width * 0.1, top - width * 0.1),
                (left + width / 2, top - width * 1.5),
                (right + width * 0.1, top - width * 0.1),
            ],
            self.roof_tone(roof),
        )
        self.brush.polygon(
            [
                (left + width / 2, top - width * 1.5),
                (right + width * 0.1, top - width * 0.1),
                (left + width * 0.62, top - width * 0.1),
            ],
            self.roof_tone(mix(roof, (24, 18, 50), 0.3)),
        )
        self.brush.limb(
            [(left + width / 2, top - width * 1.45), (left + width / 2, top - width * 1.9)],
            [width * 0.04, width * 0.03],
            self.tone((90, 80, 80)),
        )
        self.brush.polygon(
            [
                (left + width / 2, top - width * 1.9),
                (left + width * 1.0, top - width * 1.78),
                (left + width / 2, top - width * 1.65),
            ],
            self.tone((206, 60, 60)),
        )
