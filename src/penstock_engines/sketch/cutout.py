"""Draws subjects alone, on a transparent background."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.grouping import Group, Wanted, arrange
from penstock_engines.cinema.paint.brush import Picture
from penstock_engines.cinema.script import Relation, Role, Side
from penstock_engines.cinema.subjects import draw_step
from penstock_engines.product import Unable

MARGIN = 0.05
"""Room on each side, as a share of it."""
ROOM = 1.3
"""Scale of the ground on which the subjects are drawn before they are cut to their outline."""
FAINT = 6
"""Alpha below which a pixel becomes clear."""
NO_SUBJECT = (
    "The prompt names no subject that can be drawn alone: name an animal, a person, a vehicle or a thing, such as "
    "'a red fox', or ask for an opaque background."
)


def paint_cutout(roles: Sequence[Role], relations: Sequence[Relation], width: int, height: int) -> Picture:
    """Return the roles in one group, as large as fits, with a premultiplied alpha."""
    if not roles:
        raise Unable(NO_SUBJECT)
    wanted = [Wanted(role.player, role.player.size * role.scale, role.count) for role in roles]
    anchored = {relation.role for relation in relations}
    free = [number for number in range(len(roles)) if number not in anchored]
    beside = [Relation(number, Side.BESIDE, free[0]) for number in free[1:]]
    (group,) = arrange(wanted, [*relations, *beside], repeat=True)[:1]
    left, top, right, bottom = group.box
    across, down = width * (1 - 2 * MARGIN), height * (1 - 2 * MARGIN)
    unit = min(across / (right - left), down / (bottom - top))
    whole = _draw(group, roles, unit)
    return _centre(whole, width, height, across, down)


def choose_one(roles: Sequence[Role], relations: Sequence[Relation]) -> tuple[list[Role], list[Relation]]:
    """Return the first role alone, with all that is at it or that it is at, as a cat with its chair."""
    kept = {0} if roles else set[int]()
    for _ in relations:
        kept |= {number for pair in relations for number in (pair.role, pair.anchor) if {pair.role, pair.anchor} & kept}
    numbers = {old: new for new, old in enumerate(sorted(kept))}
    chosen = [replace(roles[number], count=1) for number in sorted(kept)]
    return chosen, [
        Relation(numbers[relation.role], relation.side, numbers[relation.anchor])
        for relation in relations
        if relation.role in kept
    ]


def _draw(group: Group, roles: Sequence[Role], unit: float) -> Picture:
    left, top, right, bottom = (edge * unit for edge in group.box)
    width, height = round((right - left) * ROOM) + 4, round((bottom - top) * ROOM) + 4
    canvas = np.zeros((height, width, 4), np.float32)
    origin = ((width - left - right) / 2, (height - top - bottom) / 2)
    for member in sorted(group.members, key=lambda member: member.front):
        sprite = draw_step(member.subject, 0, max(2, round(member.height * unit)), roles[member.role].colour)
        x = round(origin[0] + member.x * unit - sprite.anchor[0])
        y = round(origin[1] + member.y * unit - sprite.anchor[1])
        _lay(canvas, sprite.picture, x, y)
    return np.clip(canvas.round(), 0, 255).astype(np.uint8)


def _lay(canvas: NDArray[np.float32], picture: Picture, x: int, y: int) -> None:
    """Lay a picture over the canvas, cut at its edges."""
    height, width = canvas.shape[:2]
    left, top = max(0, x), max(0, y)
    right, bottom = min(width, x + picture.shape[1]), min(height, y + picture.shape[0])
    if left >= right or top >= bottom:
        return
    part = picture[top - y : bottom - y, left - x : right - x].astype(np.float32)
    under = canvas[top:bottom, left:right]
    under *= 1 - part[..., 3:] / 255
    under += part


def _centre(whole: Picture, width: int, height: int, across: float, down: float) -> Picture:
    """Cut the drawing to its outline, and put it into the middle of a clear picture."""
    cover = whole[..., 3] >= FAINT
    if not cover.any():
        raise Unable(NO_SUBJECT)
    left, top, wide, tall = cv2.boundingRect(cover.astype(np.uint8))
    cut = np.where(cover[..., None], whole, 0)[top : top + tall, left : left + wide].astype(np.uint8)
    scale = min(1.0, across / wide, down / tall)
    if scale < 1:
        size = (max(1, round(wide * scale)), max(1, round(tall * scale)))
        cut = np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_AREA), np.uint8)
    picture = np.zeros((height, width, 4), np.uint8)
    y, x = (height - cut.shape[0]) // 2, (width - cut.shape[1]) // 2
    picture[y : y + cut.shape[0], x : x + cut.shape[1]] = cut
    return picture


def list_left_out(roles: Sequence[Role], chosen: Sequence[Role]) -> Iterator[str]:
    """Yield the names of the roles that were not chosen."""
    names = {role.subject for role in chosen}
    yield from dict.fromkeys(role.subject for role in roles if role.subject not in names)
