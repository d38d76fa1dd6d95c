"""Casting: the position, size, direction and ground of every actor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from penstock_engines.cinema.actors import Actor, Wardrobe
from penstock_engines.cinema.grouping import Group, Wanted, arrange, measure
from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.landscape.terrain import make_line
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Layer
from penstock_engines.cinema.paths import Part, follow, stand
from penstock_engines.cinema.scene import Floor, Place, Scene, Surface
from penstock_engines.cinema.script import Camera, Relation, Role, Script, Side
from penstock_engines.cinema.subjects import Habitat, Motion, Subject

MAX_SIZE = 0.7
"""The largest height of an actor, as a share of the frame's."""

SPOTS = (1 / 3, -1 / 3, 0.0, 0.66, -0.66, 0.16, -0.16)
"""Actors' positions halfway through the clip, as shares of half the width, on the first actor's side."""
LARGE = 0.4
"""Height from which a thing of the cast stands behind the others."""
LANES: dict[Habitat, tuple[float, float]] = {Habitat.GROUND: (0.0, 0.2), Habitat.FIXED: (0.0, 0.0)}
"""Lanes of a street for feet, from the far kerb to the near one. The rest is for wheels."""
NEAR_TABLES: Mapping[str, float] = MappingProxyType({"cafe": 1.25, "table": 1.8})
"""Places with a table before the camera, and the scale of small things on it."""
CARRYING = frozenset({Side.ON, Side.IN, Side.ABOVE})
"""Sides of followers that do not stand on the ground."""
ALOFT = frozenset({Habitat.AIR, Habitat.SPACE, Habitat.UNDERWATER})
WIDEST, HIGHEST, ENLARGED = 0.86, 0.66, 1.9
"""Limits of a group: shares of the frame's width and height, and the factor by which a picture enlarges it."""
EDGE = 0.03
"""Room between a group and the edge of the frame, in units."""
ON_LAND = (Habitat.GROUND, Habitat.ROAD, Habitat.RAIL, Habitat.FIXED)
SHORES: dict[str, Colour] = {"sea": (226, 196, 142), "city": (150, 148, 150)}


class _Troupe:
    """Actors in three places: on the place's own ground, on the strip of land before water, and before everything."""

    def __init__(self) -> None:
        self.afloat: list[tuple[float, Actor]] = []
        self.ashore: list[tuple[float, Actor]] = []
        self.front: list[tuple[float, Actor]] = []

    def enter(self, scene: Scene, at: int, *, has_shore: bool) -> None:
        """Put all actors among the planes, far actors behind near ones."""
        for number, (_, actor) in enumerate(sorted(self.afloat, key=_order)):
            scene.planes.insert(at + number, actor)
        after = at + len(self.afloat) + has_shore
        for number, (_, actor) in enumerate(sorted(self.ashore, key=_order)):
            scene.planes.insert(after + number, actor)
        scene.planes.extend(actor for _, actor in self.front)  # nothing grows before a portrait


def _order(pair: tuple[float, Actor]) -> float:
    return pair[0]


def cast_actors(scene: Scene, place: Place, seconds: float) -> None:
    """Put the whole cast on the stage, far actors behind near ones."""
    roles, groups = scene.script.cast, arrange_cast(scene.script, place.name)
    at = len(scene.planes) if scene.actors_at is None else scene.actors_at
    carried = {member.role for group in groups for member in group.members if member.side in CARRYING}
    walkers = [role for number, role in enumerate(roles) if number not in carried]
    dry = place.surface is Surface.WATER and any(role.player.habitat in ON_LAND for role in walkers)
    shore = _lay_shore(scene, place, at) if dry else None
    troupe = _Troupe()
    first = 0
    taken = 0
    for arranged in groups:
        role = roles[arranged.leader.role]
        fitting = fit_group(arranged, scene, place)
        setting = _set(scene, place, role, fitting, shore, seconds)
        group = fitting.facing(setting.ahead)
        first = first or -setting.ahead
        count = max(1, min(7, role.count)) if len(group.members) == 1 else 1
        spots = [first * SPOTS[(taken + number) % len(SPOTS)] for number in range(count)]
        spots = _keep_inside(spots, group, scene.view.half, still=scene.script.still, lone=len(groups) == 1)
        actors = _cast_role(scene, role, setting, spots)
        order, leader = actors[0]
        members = _cast_members(scene, group, setting, leader)
        actors += [(order + 1e-4 * front + 1e-6 * number, actor) for number, (front, actor) in enumerate(members, 1)]
        in_front = setting.subject.is_bust or (_is_laid(role.player) and place.name == "cafe")
        (troupe.front if in_front else troupe.ashore if setting.is_ashore else troupe.afloat).extend(actors)
        taken += count
    troupe.enter(scene, at, has_shore=shore is not None)


def arrange_cast(script: Script, place: str) -> list[Group]:
    """Return the cast of a script in groups. In a picture, all that stand on one ground are one group."""
    wanted = [
        Wanted(role.player, min(MAX_SIZE, role.player.size * role.scale * _find_table(place, role.player)), role.count)
        for role in script.cast
    ]
    relations = list(script.relations)
    if script.still:
        relations += _join_neighbours(wanted, relations)
    return arrange(wanted, relations)


def _join_neighbours(wanted: Sequence[Wanted], relations: Sequence[Relation]) -> Iterator[Relation]:
    """Yield a relation that puts each role without one beside the first of those on its ground."""
    anchored = {relation.role for relation in relations}
    leaders: dict[bool, int] = {}
    for number, role in enumerate(wanted):
        if number not in anchored and not role.subject.is_bust:
            first = leaders.setdefault(role.subject.habitat in ALOFT, number)
            if first != number:
                yield Relation(number, Side.BESIDE, first)


def fit_group(group: Group, scene: Scene, place: Place) -> Group:
    """Return a group that fits the frame. In a picture it is enlarged, too."""
    if len(group.members) == 1 and not scene.script.still:
        return group
    left, top, right, bottom = group.box
    view = scene.view
    share = min(WIDEST * 2 * view.half / (right - left), HIGHEST * (view.bottom - view.top) / (bottom - top))
    most = ENLARGED if scene.script.still and place.name not in NEAR_TABLES else 1.2 if scene.script.still else 1.0
    return group.scaled(min(share, most))


def _find_table(place: str, subject: Subject) -> float:
    """Return the scale of a small thing on the table of a place, else 1."""
    return NEAR_TABLES.get(place, 1.0) if _is_laid(subject) else 1.0


def _keep_inside(spots: list[float], group: Group, half: float, *, still: bool, lone: bool) -> list[float]:
    """Return the spots, the first moved so that all of a group is seen. A lone group is nearer to the middle."""
    if not (len(group.members) > 1 or (still and len(spots) == 1)):
        return spots
    left, _, right, _ = group.box
    low, high = -half + EDGE - left, half - EDGE - right
    middle = (low + high) / 2 if low > high else min(high, max(low, spots[0] * half * (0.5 if lone else 1.0)))
    return [middle / half, *spots[1:]]


def _set(scene: Scene, place: Place, role: Role, group: Group, shore: Floor | None, seconds: float) -> "Setting":
    """Return the properties of all actors of a group's leader."""
    subject = replace(group.leader.subject, size=group.leader.height)
    on_shore = shore is not None and subject.habitat in ON_LAND
    floor = shore if shore is not None and on_shore else _choose_lane(scene.floor, subject, place.surface)
    if _is_laid(role.player) and place.name == "cafe":
        floor = Floor(scene.view.bottom - 0.02, scene.view.bottom - 0.01, 0.85)
    elif subject.is_bust:
        floor = Floor(scene.view.bottom + 0.03, scene.view.bottom + 0.04, floor.depth)
    elif role.sprite and subject.habitat is Habitat.FIXED and subject.size > LARGE and not scene.script.still:
        floor = replace(floor, near=floor.far)
    beyond = floor.near + max(group.box[3], 0.0) - scene.view.bottom + 0.01
    if len(group.members) > 1 and beyond > 0:
        floor = replace(floor, far=floor.far - beyond, near=floor.near - beyond)
    ahead = _choose_way(scene.script.camera, subject, lucky=bool(scene.random.random() < 0.65))
    ahead = 1 if group.is_sided else ahead
    surface = Surface.GROUND if on_shore else place.surface
    return Setting(subject, floor, surface, seconds, ahead, on_shore)


def _is_laid(subject: Subject) -> bool:
    """Return whether a thing belongs on a table, as food does."""
    return subject.habitat is Habitat.FIXED and not subject.is_person and subject.size < LARGE / 1.3


def _lay_shore(scene: Scene, place: Place, at: int) -> Floor:
    """Lay a strip of land before the water, for subjects that cannot swim."""
    sheet = scene.sheet(0.6)
    top = scene.view.bottom - 0.15
    plain = SHORES.get(place.sound, (120, 164, 84))
    colours = [
        scene.light.ground(tone) for tone in (mix(plain, (255, 255, 255), 0.1), plain, mix(plain, (30, 30, 50), 0.3))
    ]
    paint_hill(sheet, make_line(scene, sheet, top, 0.03, 0.8), colours, reach=0.16, random=scene.random)
    scene.insert(at, Layer(sheet))
    return Floor(top + 0.045, scene.view.bottom - 0.035, 0.6)


@dataclass(frozen=True, slots=True)
class Setting:
    """Properties that all actors of one role share."""

    subject: Subject
    floor: Floor
    surface: Surface
    seconds: float
    ahead: int
    is_ashore: bool = False


def _cast_role(scene: Scene, role: Role, setting: Setting, spots: list[float]) -> list[tuple[float, Actor]]:
    """Return all actors of one role. They differ in distance, position and rhythm."""
    random, view, subject, floor = scene.random, scene.view, setting.subject, setting.floor
    count = len(spots)
    flies = _is_aloft(subject, setting.surface)
    full = _fit(subject, view.half) * (1.0 if count < 3 else 0.72 if flies else 0.88)
    apart = max(0.22, min(0.8 * measure(subject).width * full / view.half, 1.3 / count))
    wardrobe: Wardrobe | None = None
    cast: list[tuple[float, Actor]] = []
    for number, spot in enumerate(spots):
        nearness = 1 - number / (count - 1) if count > 1 else 0.62
        if subject.is_bust:
            nearness = 0.62
        place = number if number in (0, count - 1) else count - 1 - number  # no slanting line
        flock = spots[0] + apart * (place - (count - 1) / 2)
        if flies:
            line = _sky_line(scene, subject, setting.surface, number, count)
            depth, height, order = 0.25, full * (0.7 + 0.3 * nearness), nearness - 1
        else:
            line = floor.far + (floor.near - floor.far) * nearness
            depth = min(0.9, line / view.bottom) if floor.depth is None else floor.depth
            height, order = full * (0.72 + 0.43 * nearness), line
        part = Part(
            subject=subject,
            view=view,
            surface=setting.surface,
            height=height,
            middle=(flock if flies else spot) * view.half + (float(random.uniform(-0.05, 0.05)) if count > 1 else 0.0),
            line=line,
            ahead=setting.ahead,
            seconds=setting.seconds,
            offset=float(random.random()),
        )
        if wardrobe is None:
            wardrobe = Wardrobe(scene, part, drawn=full * (1.0 if flies else 1.15), colour=role.colour)
        cast.append((order, Actor(scene, part, wardrobe, depth=depth)))
    return cast


def _cast_members(scene: Scene, group: Group, setting: Setting, first: Actor) -> Iterator[tuple[int, Actor]]:
    """Yield the layer and the actor of each member of a group besides its leader. All keep their places at it."""
    scale = first.part.height / group.leader.height
    if group.stands:
        first.path = stand(first.path(setting.seconds / 2), first.part)
    wardrobes: dict[int, Wardrobe] = {}
    for number, member in enumerate(group.members[1:], 1):
        part = replace(
            first.part,
            subject=member.subject,
            height=member.height * scale,
            line=first.part.line + member.y * scale,
            offset=(first.part.offset + 0.37 * number) % 1,
        )
        if member.role not in wardrobes:
            colour = scene.script.cast[member.role].colour
            wardrobes[member.role] = Wardrobe(scene, part, drawn=part.height, colour=colour)
        carried = member.side in CARRYING
        path = follow(first.path, part, (member.x * scale, member.y * scale), carried=carried)
        shadowless = carried or member.subject.habitat in ALOFT
        yield (
            member.front,
            Actor(scene, part, wardrobes[member.role], depth=first.depth, path=path, carried=shadowless),
        )


def _choose_lane(floor: Floor, subject: Subject, surface: Surface) -> Floor:
    """Return the lane of a street: pavement for feet, road for wheels."""
    if surface is not Surface.ROAD:
        return floor
    low, high = LANES.get(subject.habitat, (0.5, 1.0))
    deep = floor.near - floor.far
    return replace(floor, far=floor.far + low * deep, near=floor.far + high * deep)


def _choose_way(camera: Camera, subject: Subject, *, lucky: bool) -> int:
    """Return 1 for right, -1 for left. A panning camera passes slow actors, or they would seem to go backwards."""
    pan = {Camera.PAN_RIGHT: 1, Camera.PAN_LEFT: -1}.get(camera)
    if pan is None:
        return 1 if lucky else -1
    return pan if subject.motion in (Motion.RUN, Motion.DRIVE, Motion.FLY) else -pan


def _fit(subject: Subject, half: float) -> float:
    """Return its height in units, limited by the width of the frame."""
    wide = (subject.box[2] - subject.box[0]) * subject.size
    limit = 1.35 if subject.habitat is Habitat.RAIL else 0.9
    return subject.size * min(1.0, limit * 2 * half / wide)


def _is_aloft(subject: Subject, surface: Surface) -> bool:
    """Return whether it plays above the ground."""
    if surface in (Surface.SPACE, Surface.SKY):
        return True
    if subject.habitat is Habitat.UNDERWATER:
        return surface is not Surface.WATER
    return subject.habitat in (Habitat.AIR, Habitat.SPACE) and subject.motion is not Motion.CLIMB


def _sky_line(scene: Scene, subject: Subject, surface: Surface, number: int, count: int) -> float:
    """Return its flying height: in the middle of the free sky, with a flock spread around it."""
    view = scene.view
    middle = view.top * 0.5 if surface in (Surface.GROUND, Surface.ROAD, Surface.WATER) else view.top * 0.22
    if surface is Surface.INDOOR:
        middle = view.top * 0.35
    spread = 0.0 if count == 1 else (number / (count - 1) - 0.5) * min(0.34, -view.top * 0.5)
    lowest, highest = view.bottom - subject.size * 0.6, view.top + subject.size * 0.7 + 0.06
    return min(lowest, max(highest, middle + spread + float(scene.random.uniform(-0.03, 0.03))))
