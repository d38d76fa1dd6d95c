"""Outfits, one for each kind of person."""

from dataclasses import replace

from penstock_engines.cinema.subjects.people import garments
from penstock_engines.cinema.subjects.people.person import RUNNING, Hair, Outfit

MAN = Outfit()

WOMAN = Outfit(hair=Hair.LONG, hem=0.24, flare=0.17, leg=0.095, girth=0.17, shoe=(196, 60, 70))

CHILD = Outfit(
    head=0.15,
    shoulder=0.63,
    hip=0.37,
    girth=0.22,
    leg=0.12,
    reach=0.34,
    lift=0.1,
    ground_share=0.5,
    sleeve=False,
    shoe=(226, 80, 64),
    arms=((20.0, 50.0, 40.0), (20.0, 50.0, -40.0)),
)

GIRL = replace(
    CHILD,
    hair=Hair.PONYTAIL,
    hem=0.2,
    flare=0.18,
    arms=((130.0, 20.0, 6.0), (20.0, 30.0, -40.0)),
    held=garments.red_balloon,
)

OLD_MAN = Outfit(
    hair=Hair.BALD,
    beard=(236, 236, 240),
    lean=12.0,
    reach=0.22,
    lift=0.04,
    hat=garments.flat_cap,
    arms=((30.0, 30.0, 8.0), (0.0, 24.0, -14.0)),
    held=garments.walking_stick,
)

OLD_WOMAN = Outfit(
    hair=Hair.BUN,
    lean=10.0,
    reach=0.2,
    lift=0.04,
    hem=0.14,
    flare=0.18,
    arms=((30.0, 30.0, 8.0), (0.0, 24.0, -14.0)),
    held=garments.walking_stick,
)

RUNNER = Outfit(
    lean=10.0, reach=0.62, lift=0.24, ground_share=0.38, arms=RUNNING, sleeve=False, shoe=(250, 250, 250), leg=0.11
)

HIKER = Outfit(
    back=garments.backpack, hat=garments.cap, arms=((24.0, 40.0, 18.0), (0.0, 18.0, -26.0)), held=garments.hiking_pole
)

KNIGHT = Outfit(
    girth=0.22,
    leg=0.13,
    shoe=garments.STEEL,
    back=garments.cape,
    chest=garments.armour,
    hat=garments.helmet,
    arms=((40.0, 50.0, 6.0), (24.0, 60.0, -4.0)),
    held=garments.sword,
    far_held=garments.shield,
    reach=0.28,
)

SAMURAI = Outfit(
    girth=0.22,
    leg=0.15,
    chest=garments.lacing,
    hat=garments.samurai_helmet,
    arms=((30.0, 50.0, 6.0), (34.0, 60.0, -4.0)),
    held=garments.katana,
    reach=0.28,
    shoe=(226, 206, 170),
)

FARMER = Outfit(
    hat=garments.straw_hat, arms=((30.0, 50.0, 6.0), (0.0, 18.0, -24.0)), held=garments.pitchfork, shoe=(90, 62, 44)
)

FISHERMAN = Outfit(
    stands=True,
    hat=garments.straw_hat,
    arms=((40.0, 50.0, 3.0), (44.0, 50.0, -3.0)),
    held=garments.fishing_rod,
    beard=(226, 220, 214),
    shoe=(70, 96, 70),
)

CHEF = Outfit(
    stands=True,
    hat=garments.chef_hat,
    chest=garments.apron,
    arms=((30.0, 60.0, 6.0), (-20.0, 80.0, 2.0)),
    held=garments.frying_pan,
    girth=0.23,
)

WIZARD = Outfit(
    hem=0.03,
    flare=0.2,
    hat=garments.wizard_hat,
    beard=(240, 240, 244),
    hair=Hair.LONG,
    arms=((46.0, 40.0, 6.0), (0.0, 30.0, -14.0)),
    held=garments.staff,
    reach=0.22,
    lift=0.04,
)

PRINCESS = Outfit(
    hair=Hair.LONG,
    hem=0.02,
    flare=0.27,
    girth=0.165,
    leg=0.09,
    hat=garments.crown,
    arms=((-20.0, 40.0, 8.0), (20.0, 40.0, -8.0)),
    reach=0.2,
    lift=0.03,
)

KING = Outfit(hat=garments.crown, beard=(120, 80, 50), back=garments.cape, girth=0.23, reach=0.26)

MONK = Outfit(
    hair=Hair.BALD,
    hem=0.05,
    flare=0.16,
    reach=0.24,
    lift=0.04,
    arms=((30.0, 80.0, 3.0), (30.0, 80.0, -3.0)),
    shoe=(160, 110, 70),
)

STROLLER = replace(WOMAN, arms=((40.0, 110.0, 2.0), (0.0, 18.0, -22.0)), held=garments.umbrella, hair=Hair.BUN)
