"""Rooms with a view."""

import math

import numpy as np

from penstock_engines.cinema.landscape.greenery import clump_blob
from penstock_engines.cinema.landscape.masonry import Builder
from penstock_engines.cinema.landscape.ridges import add_glow, paint_hill
from penstock_engines.cinema.landscape.terrain import add_hills, add_range
from penstock_engines.cinema.landscape.weather import add_weather
from penstock_engines.cinema.paint.brush import Colour, Point, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_flicker
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words

Box = tuple[float, float, float, float]


def _room_tone(scene: Scene, colour: Colour) -> Colour:
    """Return a colour in the room, kept warm by lamps when it is dark outside."""
    light = scene.light
    return mix(light.shade(colour), mix((0, 0, 0), mix(colour, (255, 170, 90), 0.3), 0.62), 0.75 * light.darkness)


def _add_outside(scene: Scene) -> None:
    """Add the view through a window: sky, hills and the weather."""
    scene.add_sky()
    add_range(scene, depth=0.02, height=0.2, wave=0.6, distance=0.9, snow=0.08, foot=-0.02)
    sheet, _ = add_hills(
        scene, depth=0.04, foot=-0.02, height=0.08, wave=0.5, distance=0.5, colours=((110, 160, 96), (80, 130, 84))
    )
    scene.lay(sheet)
    add_weather(scene, 8.0)
    scene.outdoors = False


def _open_window(sheet: Sheet, box: Box, frame: Colour, bars: tuple[int, int] = (2, 2)) -> None:
    """Cut a pane out of a wall and put a frame around it."""
    left, top, right, bottom = box
    brush, rim = sheet.brush, 0.018
    brush.polygon(
        [(left - rim, top - rim), (right + rim, top - rim), (right + rim, bottom + rim), (left - rim, bottom + rim)],
        frame,
    )
    sheet.picture[sheet.row(top) : sheet.row(bottom), sheet.column(left) : sheet.column(right)] = 0
    for number in range(1, bars[0]):
        x = left + (right - left) * number / bars[0]
        brush.polygon([(x - 0.006, top), (x + 0.006, top), (x + 0.006, bottom), (x - 0.006, bottom)], frame)
    for number in range(1, bars[1]):
        y = top + (bottom - top) * number / bars[1]
        brush.polygon([(left, y - 0.006), (right, y - 0.006), (right, y + 0.006), (left, y + 0.006)], frame)
    brush.polygon(
        [
            (left - 0.04, bottom + rim),
            (right + 0.04, bottom + rim),
            (right + 0.05, bottom + rim + 0.02),
            (left - 0.05, bottom + rim + 0.02),
        ],
        mix(frame, (60, 40, 30), 0.2),
    )


def _paint_walls(scene: Scene, sheet: Sheet, wall: Colour, boards: Colour, floor_line: float) -> None:
    random = scene.random
    everywhere = np.full(sheet.picture.shape[1], sheet.top - 0.01, np.float32)
    tones = [
        _room_tone(scene, mix(wall, (60, 40, 60), 0.25)),
        _room_tone(scene, wall),
        _room_tone(scene, mix(wall, (255, 220, 180), 0.1)),
    ]
    paint_hill(sheet, everywhere, tones, reach=floor_line - sheet.top, random=random, grain=5)
    ground = np.full(sheet.picture.shape[1], floor_line, np.float32)
    paint_hill(
        sheet,
        ground,
        [
            _room_tone(scene, mix(boards, (255, 220, 180), 0.12)),
            _room_tone(scene, boards),
            _room_tone(scene, mix(boards, (20, 10, 20), 0.4)),
        ],
        reach=sheet.bottom - floor_line,
        random=random,
        grain=8,
    )
    for number in np.linspace(-3, 3, 31):
        sheet.brush.polygon(
            [
                (number * 0.55, floor_line),
                (number * 0.55 + 0.003, floor_line),
                (number + 0.006, sheet.bottom),
                (number, sheet.bottom),
            ],
            _room_tone(scene, mix(boards, (20, 10, 20), 0.5)),
            0.4,
        )
    skirting = _room_tone(scene, mix(wall, (255, 250, 240), 0.5))
    sheet.brush.polygon(
        [
            (sheet.left, floor_line - 0.03),
            (sheet.right, floor_line - 0.03),
            (sheet.right, floor_line),
            (sheet.left, floor_line),
        ],
        skirting,
    )


def build_room(scene: Scene) -> None:
    """Build a room with an armchair by the fire, and a window."""
    _add_outside(scene)
    light, view = scene.light, scene.view
    wide = max(0.62, view.half)
    room = scene.sheet(0.2)
    _paint_walls(scene, room, (178, 120, 104), (132, 86, 60), 0.12)
    tall = view.half < 0.5
    pane = (-0.3, -0.62, 0.04, -0.36) if tall else (-0.62 * wide, -0.42, -0.1 * wide, -0.08)
    _open_window(room, pane, _room_tone(scene, (240, 230, 214)))
    for side in (pane[0] - 0.04, pane[2] + 0.04):
        high, low = pane[1] - 0.08, pane[3] + 0.1
        folds = [
            (side - 0.05, high),
            (side + 0.05, high),
            (side + 0.035, (high + low) / 2),
            (side + 0.06, low),
            (side - 0.06, low),
        ]
        room.brush.blob([*folds, (side - 0.035, (high + low) / 2)], _room_tone(scene, (160, 60, 62)))
    hearth = (0.08, 0.1) if tall else (0.46 * wide, 0.1)
    _paint_fireplace(scene, room, hearth)
    if not tall:
        _paint_shelf(scene, room, (0.46 * wide, -0.36))
    scene.lay(room)
    fire = (hearth[0], hearth[1] - 0.07)
    scene.add(
        SoftLight(
            view,
            paint_flicker(
                (
                    (*fire, 0.055, (255, 170, 60)),
                    (fire[0] - 0.03, fire[1] + 0.01, 0.03, (255, 120, 30)),
                    (fire[0] + 0.03, fire[1], 0.035, (255, 120, 30)),
                    (*fire, 0.5, (120, 52, 14)),
                ),
                0.75 + 0.25 * light.darkness,
            ),
            coarse=4,
            depth=0.2,
        )
    )
    rug = scene.sheet(0.4)
    for share, tone in ((1.0, (150, 56, 60)), (0.88, (226, 190, 140)), (0.8, (168, 70, 66)), (0.45, (214, 160, 110))):
        rug.brush.ellipse((0.05, 0.27), (0.52 * share, 0.075 * share), _room_tone(scene, tone))
    scene.lay(rug)
    scene.perform(0.24, 0.3)
    near = scene.sheet(0.7)
    _paint_armchair(scene, near, (-0.78 * wide, view.bottom - 0.01))
    scene.lay(near)


def _paint_fireplace(scene: Scene, sheet: Sheet, foot: Point) -> None:
    x, y = foot
    builder = Builder(sheet, scene.light, scene.random)
    stone = _room_tone(scene, (150, 134, 128))
    builder.box(x - 0.2, y - 0.3, x + 0.2, y + 0.02, stone)
    builder.box(x - 0.24, y - 0.33, x + 0.24, y - 0.295, _room_tone(scene, (120, 78, 56)))
    for row in range(7):
        for column in range(6):
            left = x - 0.2 + 0.07 * column - (0.03 if row % 2 else 0)
            tone = mix(stone, _room_tone(scene, (110, 92, 92)), float(scene.random.random()) * 0.8)
            builder.box(
                max(x - 0.2, left), y - 0.29 + 0.044 * row, min(x + 0.2, left + 0.064), y - 0.254 + 0.044 * row, tone
            )
    sheet.brush.blob(
        [
            (x - 0.11, y + 0.02),
            (x - 0.115, y - 0.1),
            (x - 0.07, y - 0.17),
            (x, y - 0.185),
            (x + 0.07, y - 0.17),
            (x + 0.115, y - 0.1),
            (x + 0.11, y + 0.02),
        ],
        (34, 20, 18),
    )
    for side, slant in ((-0.05, 0.02), (0.05, -0.02)):
        sheet.brush.limb(
            [(x + side - 0.04, y - 0.005 + slant), (x + side + 0.04, y - 0.005 - slant)], [0.026, 0.026], (74, 44, 30)
        )
    for side, tall in ((-0.045, 0.07), (0.0, 0.11), (0.04, 0.08), (-0.02, 0.09), (0.022, 0.075)):
        sheet.brush.blob(
            [
                (x + side - 0.026, y - 0.015),
                (x + side - 0.014, y - 0.02 - tall * 0.6),
                (x + side, y - 0.02 - tall),
                (x + side + 0.016, y - 0.02 - tall * 0.55),
                (x + side + 0.026, y - 0.015),
            ],
            (250, 130, 40),
        )
        sheet.brush.blob(
            [(x + side - 0.013, y - 0.015), (x + side, y - 0.02 - tall * 0.6), (x + side + 0.013, y - 0.015)],
            (255, 214, 110),
        )
    for number, tone in enumerate(((230, 200, 150), (196, 90, 80), (240, 236, 220))):
        px = x - 0.15 + number * 0.13
        builder.box(px, y - 0.33 - 0.05 - 0.012 * number, px + 0.028, y - 0.33, _room_tone(scene, tone))
        add_glow(sheet, (px + 0.014, y - 0.4), 0.05, (255, 190, 100), 0.5 * scene.light.darkness)


def _paint_shelf(scene: Scene, sheet: Sheet, middle: Point) -> None:
    x, y = middle
    builder = Builder(sheet, scene.light, scene.random)
    builder.box(x - 0.2, y, x + 0.2, y + 0.014, _room_tone(scene, (110, 72, 52)))
    left = x - 0.18
    tones: tuple[Colour, ...] = ((186, 70, 66), (70, 110, 130), (226, 180, 100), (110, 130, 90), (150, 110, 150))
    while left < x + 0.16:
        thick, tall = scene.random.uniform(0.012, 0.026), scene.random.uniform(0.06, 0.09)
        builder.box(left, y - tall, left + thick, y, _room_tone(scene, tones[int(scene.random.integers(5))]))
        left += thick + 0.002


def _paint_armchair(scene: Scene, sheet: Sheet, foot: Point) -> None:
    x, y = foot
    cloth, shade = _room_tone(scene, (74, 110, 104)), _room_tone(scene, (46, 72, 76))
    sheet.brush.blob(
        [
            (x - 0.2, y),
            (x - 0.24, y - 0.2),
            (x - 0.2, y - 0.42),
            (x - 0.05, y - 0.46),
            (x + 0.08, y - 0.4),
            (x + 0.1, y - 0.15),
            (x + 0.08, y),
        ],
        shade,
    )
    sheet.brush.blob(
        [
            (x - 0.14, y - 0.05),
            (x - 0.16, y - 0.25),
            (x - 0.12, y - 0.38),
            (x, y - 0.4),
            (x + 0.06, y - 0.3),
            (x + 0.06, y - 0.05),
        ],
        cloth,
    )
    sheet.brush.blob(
        [(x - 0.1, y), (x - 0.1, y - 0.14), (x + 0.18, y - 0.15), (x + 0.2, y - 0.04), (x + 0.18, y)],
        mix(cloth, (255, 255, 255), 0.08),
    )
    sheet.brush.blob(
        [(x - 0.26, y), (x - 0.27, y - 0.22), (x - 0.2, y - 0.26), (x - 0.14, y - 0.2), (x - 0.13, y)], cloth
    )


def build_kitchen(scene: Scene) -> None:
    """Build a cafe with a table by a wide window and a steaming cup."""
    _add_outside(scene)
    view = scene.view
    wide = max(0.62, view.half)
    room = scene.sheet(0.16)
    _paint_walls(scene, room, (222, 200, 168), (166, 116, 80), 0.1)
    _open_window(room, (-0.7 * wide, -0.44, 0.26 * wide, -0.06), _room_tone(scene, (250, 246, 236)), (4, 1))
    builder = Builder(room, scene.light, scene.random)
    for row in range(2):
        y = -0.38 + 0.19 * row
        builder.box(0.42 * wide, y, 0.92 * wide, y + 0.014, _room_tone(scene, (124, 84, 60)))
        for number in range(6):
            tone: Colour = ((214, 90, 80), (240, 236, 226), (90, 140, 150), (236, 186, 90))[(number + row) % 4]
            x = (0.45 + 0.078 * number) * wide
            builder.box(x, y - 0.06 - 0.02 * (number % 2), x + 0.034, y, _room_tone(scene, tone))
    builder.box(0.36 * wide, -0.04, room.right, 0.11, _room_tone(scene, (112, 132, 124)))
    builder.box(0.34 * wide, -0.06, room.right, -0.036, _room_tone(scene, (236, 228, 214)))
    scene.lay(room)
    lamps = scene.sheet(0.3)
    for x in (-0.45 * wide, -0.02, 0.5 * wide):
        lamps.brush.limb([(x, lamps.top - 0.02), (x, view.top * 0.72)], [0.005, 0.005], _room_tone(scene, (50, 44, 44)))
        lamps.brush.blob(
            [
                (x - 0.06, view.top * 0.72 + 0.05),
                (x - 0.035, view.top * 0.72 - 0.005),
                (x + 0.035, view.top * 0.72 - 0.005),
                (x + 0.06, view.top * 0.72 + 0.05),
            ],
            _room_tone(scene, (60, 96, 92)),
        )
        lamps.brush.ellipse((x, view.top * 0.72 + 0.052), (0.045, 0.012), (255, 240, 196))
        add_glow(lamps, (x, view.top * 0.72 + 0.06), 0.26, (255, 200, 120), 0.22 + 0.4 * scene.light.darkness)
    scene.lay(lamps)
    scene.perform(0.16, 0.24)
    _lay_table(scene)


def _lay_table(scene: Scene) -> None:
    """Paint a round table before the camera, with cup, cake and flowers."""
    view, random = scene.view, scene.random
    table = scene.sheet(0.85)
    brush, y = table.brush, view.bottom - 0.03
    brush.ellipse((0.1, y + 0.1), (0.62, 0.13), _room_tone(scene, (96, 60, 44)))
    brush.ellipse((0.1, y + 0.085), (0.62, 0.125), _room_tone(scene, (190, 132, 88)))
    x = 0.1 - 0.2 * min(1, view.half)
    brush.ellipse((x, y + 0.015), (0.1, 0.022), _room_tone(scene, (246, 242, 234)))
    brush.blob(
        [
            (x - 0.058, y - 0.075),
            (x + 0.058, y - 0.075),
            (x + 0.046, y - 0.01),
            (x + 0.024, y + 0.012),
            (x - 0.024, y + 0.012),
            (x - 0.046, y - 0.01),
        ],
        _room_tone(scene, (236, 96, 84)),
    )
    brush.ellipse((x, y - 0.074), (0.056, 0.014), _room_tone(scene, (90, 52, 36)))
    brush.limb(
        [(x + 0.054, y - 0.06), (x + 0.086, y - 0.045), (x + 0.05, y - 0.018)],
        [0.012, 0.012, 0.012],
        _room_tone(scene, (236, 96, 84)),
    )
    vase = (0.1 + 0.24 * min(1, view.half), y - 0.0)
    brush.blob(
        [
            (vase[0] - 0.03, vase[1] - 0.1),
            (vase[0] + 0.03, vase[1] - 0.1),
            (vase[0] + 0.04, vase[1] - 0.03),
            (vase[0] + 0.022, vase[1] + 0.01),
            (vase[0] - 0.022, vase[1] + 0.01),
            (vase[0] - 0.04, vase[1] - 0.03),
        ],
        _room_tone(scene, (120, 170, 180)),
    )
    for turn in (-0.5, -0.15, 0.2, 0.55):
        head = (vase[0] + math.sin(turn) * 0.13, vase[1] - 0.1 - math.cos(turn) * 0.12)
        brush.limb([(vase[0], vase[1] - 0.09), head], [0.007, 0.005], _room_tone(scene, (84, 130, 80)))
        clump_blob(brush, head, 0.032, _room_tone(scene, (246, 150, 160)), random)
        clump_blob(brush, head, 0.016, _room_tone(scene, (255, 214, 130)), random)
    scene.lay(table)
    steam = [(x + 0.012 * math.sin(step), y - 0.1 - 0.02 * step) for step in range(6)]
    veil = scene.sheet(0.86)
    for number, point in enumerate(steam):
        veil.brush.glow(point, 0.022 + 0.006 * number, (255, 255, 255), 0.26 - 0.035 * number)
    scene.lay(veil, sway=0.09, foot=y - 0.08, rhythm=0.8, bob=0.006)


def build_table(scene: Scene) -> None:
    """Build a long table before a wide window, seen from near."""
    _add_outside(scene)
    view = scene.view
    wide = max(0.62, view.half)
    room = scene.sheet(0.12)
    _paint_walls(scene, room, (214, 196, 172), (150, 108, 78), 0.1)
    _open_window(room, (-0.5 * wide, -0.46, 0.5 * wide, -0.1), _room_tone(scene, (250, 246, 236)), (3, 1))
    scene.lay(room)
    _lay_slab(scene, 0.06, (178, 122, 80))
    scene.perform(0.14, 0.24)


def build_hall(scene: Scene) -> None:
    """Build a plain bright hall for work: tall windows, lamps and a bench along the wall."""
    _add_outside(scene)
    view = scene.view
    wide = max(0.62, view.half)
    room = scene.sheet(0.14)
    _paint_walls(scene, room, (196, 206, 210), (142, 146, 150), 0.1)
    for middle in (-0.62, 0.0, 0.62):
        box = ((middle - 0.2) * wide, -0.44, (middle + 0.2) * wide, -0.14)
        _open_window(room, box, _room_tone(scene, (236, 240, 242)))
    builder = Builder(room, scene.light, scene.random)
    builder.box(room.left, -0.02, room.right, 0.1, _room_tone(scene, (150, 164, 170)))
    builder.box(room.left, -0.036, room.right, -0.014, _room_tone(scene, (226, 222, 212)))
    for x in (-0.5 * wide, 0.5 * wide):
        builder.box(x - 0.16, view.top * 0.93, x + 0.16, view.top * 0.93 + 0.02, (252, 252, 246))
        add_glow(room, (x, view.top * 0.93), 0.3, (250, 250, 240), 0.14 + 0.3 * scene.light.darkness)
    scene.lay(room)
    scene.perform(0.14, 0.26)


def _lay_slab(scene: Scene, top: float, wood: Colour) -> None:
    """Paint the top of a table, from a line down to the camera."""
    table = scene.sheet(0.5)
    brush, low = table.brush, table.bottom
    brush.polygon(
        [(table.left, top), (table.right, top), (table.right, low), (table.left, low)], _room_tone(scene, wood)
    )
    for number in range(7):
        y = top + (low - top) * (number / 7) ** 1.6
        seam = _room_tone(scene, mix(wood, (40, 20, 20), 0.32))
        brush.polygon([(table.left, y), (table.right, y), (table.right, y + 0.004), (table.left, y + 0.004)], seam)
    shine = _room_tone(scene, mix(wood, (255, 240, 220), 0.4))
    brush.polygon([(table.left, top), (table.right, top), (table.right, top + 0.01), (table.left, top + 0.01)], shine)
    scene.lay(table)


ROOMS_PLACES = (
    Place(
        "cosy room",
        list_words(
            "cosy room, living room, fireplace, armchair by the fire, at home, "
            "bedroom, indoors, cabin interior, library, warm room"
        ),
        Surface.INDOOR,
        "room",
        build_room,
        horizon=0.56,
    ),
    Place(
        "cafe",
        list_words(
            "kitchen, cafe, coffee table, restaurant, breakfast table, "
            "coffee shop, dining room, cooking, cup of coffee, bakery"
        ),
        Surface.INDOOR,
        "room",
        build_kitchen,
        horizon=0.54,
    ),
    Place(
        "table",
        list_words("table, tabletop, table top, dinner table, kitchen table, wooden table, desk, workbench"),
        Surface.INDOOR,
        "room",
        build_table,
        horizon=0.54,
    ),
    Place(
        "hall",
        list_words("hall, workshop, laboratory, classroom, office, gym, studio, clinic, warehouse, hospital ward"),
        Surface.INDOOR,
        "room",
        build_hall,
        horizon=0.54,
    ),
)
