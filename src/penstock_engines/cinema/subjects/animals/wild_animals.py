"""Large wild animals."""

from dataclasses import replace

from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.subjects.animals import coats
from penstock_engines.cinema.subjects.animals.hoofed_animals import COW
from penstock_engines.cinema.subjects.animals.pets import CAT
from penstock_engines.cinema.subjects.animals.quadruped import Ears, animal
from penstock_engines.cinema.subjects.subject import BLACK, Look

CREAM: Colour = (252, 236, 212)

PINK: Colour = (240, 150, 150)

ELEPHANT = replace(
    COW,
    rear=-0.62,
    front=0.44,
    croup=-0.86,
    withers=-0.9,
    chest=-0.36,
    waist=-0.36,
    hip=(-0.4, -0.56),
    shoulder=(0.26, -0.56),
    leg=(0.34, 0.24, 0.19, 0.19),
    shank=0.12,
    hoof=False,
    neck=(0.44, 0.36),
    head=(0.56, -0.78),
    skull=0.21,
    muzzle=(0.12, 0.06, 0.2),
    tilt=0,
    ears=Ears.NONE,
    coat=None,
    snout=None,
    crown=coats.trunk_and_tusk,
    tail=((-0.58, -0.76), (-0.68, -0.62), (-0.7, -0.46)),
    tail_widths=(0.05, 0.035, 0.05),
    reach=0.26,
    nose=None,
)

LION = replace(
    CAT,
    croup=-0.7,
    withers=-0.74,
    chest=-0.32,
    waist=-0.38,
    rear=-0.6,
    front=0.46,
    hip=(-0.42, -0.52),
    shoulder=(0.3, -0.5),
    leg=(0.29, 0.17, 0.115, 0.115),
    head=(0.58, -0.78),
    skull=0.19,
    muzzle=(0.19, 0.07, 0.17),
    ears=Ears.ROUND,
    ear=0.12,
    socks=None,
    snout=CREAM,
    belly=None,
    nose=(120, 62, 50),
    coat=None,
    tail=((-0.56, -0.62), (-0.74, -0.52), (-0.84, -0.36), (-0.96, -0.38), (-1.0, -0.44)),
    tail_widths=(0.07, 0.055, 0.05, 0.05, 0.12),
    tail_tip=(132, 72, 34),
    under=coats.lion_mane,
    crown=None,
)

TIGER = replace(
    LION,
    under=None,
    belly=CREAM,
    tail_tip=BLACK,
    tail_widths=(0.09, 0.08, 0.07, 0.07, 0.06),
    head=(0.58, -0.8),
    crown=coats.tiger_face,
    coat=coats.stripes(BLACK, count=9, left=-0.58, right=0.42, top=-0.8, bottom=-0.42),
)

LEOPARD = replace(
    TIGER,
    croup=-0.66,
    withers=-0.69,
    tail_tip=None,
    crown=None,
    coat=coats.spots_over((112, 66, 30), -0.6, 0.46, -0.74, -0.4, gap=0.085),
)

BEAR = replace(
    LION,
    under=None,
    rear=-0.62,
    front=0.48,
    croup=-0.8,
    withers=-0.86,
    chest=-0.26,
    waist=-0.28,
    hip=(-0.4, -0.5),
    shoulder=(0.28, -0.5),
    leg=(0.36, 0.24, 0.17, 0.17),
    shank=0.11,
    neck=(0.5, 0.36),
    head=(0.62, -0.78),
    skull=0.2,
    muzzle=(0.26, 0.08, 0.15),
    ear=0.14,
    snout=(206, 164, 120),
    tail=(),
    tail_widths=(),
    tail_tip=None,
    reach=0.26,
    nose=BLACK,
)

POLAR_BEAR = replace(
    BEAR, snout=None, head=(0.68, -0.74), skull=0.17, muzzle=(0.27, 0.06, 0.13), neck=(0.46, 0.3), ear=0.1
)

PANDA = replace(
    BEAR,
    head=(0.54, -0.76),
    skull=0.25,
    muzzle=(0.2, 0.1, 0.16),
    snout=None,
    ear=0.17,
    crown=coats.panda_eye,
    dark_limbs=True,
    coat=coats.patches(BLACK, ((0.12, -0.95), (0.34, -0.95), (0.5, -0.5), (0.4, -0.2), (0.12, -0.2), (0.18, -0.6))),
)

DINOSAUR = replace(
    ELEPHANT,
    rear=-0.44,
    front=0.26,
    croup=-0.52,
    withers=-0.5,
    chest=-0.2,
    waist=-0.2,
    hip=(-0.26, -0.34),
    shoulder=(0.12, -0.32),
    leg=(0.24, 0.16, 0.12, 0.12),
    shank=0.08,
    neck=(0.28, 0.11),
    arch=-0.1,
    head=(0.52, -0.9),
    skull=0.09,
    muzzle=(0.14, 0.03, 0.1),
    tilt=6,
    crown=None,
    tail=((-0.34, -0.38), (-0.62, -0.3), (-0.9, -0.18), (-1.16, -0.22), (-1.3, -0.32)),
    tail_widths=(0.26, 0.19, 0.11, 0.05, 0.01),
    wag=0.04,
    reach=0.18,
    lift=0.05,
    coat=coats.spots_over(None, -0.4, 0.2, -0.56, -0.42, gap=0.1),
    nose=None,
)

RHINO = replace(
    ELEPHANT,
    croup=-0.84,
    withers=-0.9,
    chest=-0.3,
    waist=-0.32,
    leg=(0.32, 0.2, 0.15, 0.15),
    head=(0.66, -0.66),
    skull=0.17,
    muzzle=(0.28, 0.1, 0.17),
    tilt=14,
    ears=Ears.LEAF,
    ear=0.14,
    crown=coats.rhino_horns,
)

HIPPO = replace(
    RHINO,
    croup=-0.88,
    withers=-0.86,
    chest=-0.2,
    waist=-0.2,
    leg=(0.3, 0.2, 0.16, 0.16),
    head=(0.62, -0.66),
    skull=0.2,
    muzzle=(0.3, 0.12, 0.28),
    tilt=4,
    ears=Ears.ROUND,
    ear=0.11,
    crown=coats.hippo_mouth,
    nose=None,
    hip=(-0.4, -0.4),
    shoulder=(0.26, -0.4),
    reach=0.22,
    tail=(),
    tail_widths=(),
)


WILD_ANIMALS = (
    animal(ELEPHANT, 0.42, Look((142, 146, 162)), "elephant", "mammoth", "tusker"),
    animal(LION, 0.3, Look((226, 172, 92), (148, 84, 40)), "lion", "lioness", "big cat"),
    animal(TIGER, 0.28, Look((240, 146, 52), CREAM), "tiger", "tigress"),
    animal(LEOPARD, 0.25, Look((232, 180, 98)), "leopard", "cheetah", "jaguar", "panther", "lynx"),
    animal(BEAR, 0.3, Look((124, 80, 52), (90, 56, 40)), "bear", "grizzly", "brown bear", "bear cub"),
    animal(POLAR_BEAR, 0.3, Look((244, 244, 240), (210, 210, 214)), "polar bear", "white bear"),
    animal(PANDA, 0.28, Look((248, 248, 246), BLACK), "panda", "giant panda"),
    animal(DINOSAUR, 0.5, Look((124, 172, 104)), "dinosaur", "brontosaurus", "sauropod", "dino"),
    animal(RHINO, 0.3, Look((150, 150, 156)), "rhinoceros", "rhino"),
    animal(HIPPO, 0.26, Look((158, 136, 156), (226, 160, 170)), "hippopotamus", "hippo"),
)
