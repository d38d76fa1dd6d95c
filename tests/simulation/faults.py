"""Planned faults: things that happen to processes, clocks, the store, vendors and machines for a while.

Each seed has a character: some worlds are calm, some know one kind of fault, and some all of them.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from simulation.process import Process, Surroundings
from simulation.world import World

from penstock.settings.tables import Settings

DAY_SECONDS: Final = 86_400.0
CALM: Final = "calm"
DICE: Final = "dice"
"""The small faults that every port throws by itself."""
HARMLESS_SKEW_SECONDS: Final = 120.0
"""A clock that is wrong by less must do no harm. One that jumps by days may expire jobs."""
PLANS: Final[Mapping[str, int]] = {
    "kill": 10,
    "machine death": 4,
    "freeze": 6,
    "cut off": 4,
    "skew": 6,
    "clock jump": 3,
    "store away": 4,
    "store slow": 4,
    "store read-only": 3,
    "store fails over": 4,
    "vendor down": 6,
    "objects away": 4,
    "objects full": 3,
    "disk full": 3,
    "memory pressure": 3,
    "reload": 6,
    "upgrade": 2,
    "restart": 4,
    "crash loop": 1,
}
"""Kinds of planned faults, each with the largest number of them in one world."""


@dataclass(frozen=True)
class Character:
    """The faults that a world knows."""

    name: str
    kinds: tuple[str, ...]

    @property
    def is_calm(self) -> bool:
        """Return whether nothing goes wrong, so that every latency has a tight bound."""
        return not self.kinds

    @property
    def is_orderly(self) -> bool:
        """Return whether no request arrives long after its caller has given it up."""
        return not set(self.kinds) & {DICE, "freeze", "cut off", "store slow", "store fails over"}


def draw_character(seed: int) -> Character:
    """Return the character of a seed."""
    dice = random.Random(f"{seed}/character")
    thrown = dice.random()
    if thrown < 0.1:
        return Character(CALM, ())
    if thrown < 0.3:
        return Character("kills and small faults", (DICE, "kill"))
    if thrown < 0.65:
        kind = dice.choice(list(PLANS))
        return Character(f"only {kind}", (kind,))
    several = dice.sample(list(PLANS), dice.randrange(2, 7))
    if thrown < 0.85:
        return Character("several kinds", (DICE, "kill", *several))
    return Character("everything", (DICE, *PLANS))


@dataclass
class Stage:
    """Parts of a scenario that faults act on."""

    world: World
    around: Surroundings
    processes: list[Process]
    variants: Callable[[random.Random], Settings]
    """Returns changed settings."""
    use: Callable[[Settings], None]
    """Makes settings those of processes that start from now on."""
    settings: Settings


class Faults:
    """The planned faults of one world."""

    def __init__(self, stage: Stage, character: Character) -> None:
        self._stage = stage
        self._world = stage.world
        self.character = character

    def plan(self, seconds: float) -> None:
        """Plan the faults over this many seconds."""
        self._world.has_faults = DICE in self.character.kinds
        for kind in self.character.kinds:
            if kind == DICE:
                continue
            dice = random.Random(f"{self._world.seed}/plan of {kind}")
            for number in range(1 + dice.randrange(PLANS[kind])):
                self._world.later(dice.random() * seconds, self._strike, kind, number)

    def _strike(self, kind: str, number: int) -> None:
        """Let one fault happen, unless this replay leaves it out."""
        if self._world.allows(f"{kind}#{number}", kind):
            dice = random.Random(f"{self._world.seed}/{kind}#{number}")
            handlers: dict[str, Callable[[random.Random], None]] = {
                "kill": self._kill,
                "machine death": self._lose_machine,
                "freeze": self._freeze,
                "cut off": self._cut_off,
                "skew": self._skew,
                "clock jump": self._jump,
                "vendor down": self._lose_vendor,
                "memory pressure": self._press,
                "reload": self._reload,
                "upgrade": self._upgrade,
                "restart": self._restart,
                "crash loop": self._crash_loop,
            }
            handlers.get(kind, lambda dice: self._trouble(kind, dice))(dice)

    def heal(self) -> None:
        """End all faults: clocks are right, everything can be reached, and the first settings are used."""
        self._world.has_faults = False
        around = self._stage.around
        store, disk, objects = around.store, around.disk, around.objects
        store.away_until = store.slow_until = store.doubt_until = 0.0
        store.is_read_only = False
        disk.full_until = objects.away_until = objects.full_until = 0.0
        for double in around.doubles.values():
            double.down_until = 0.0
        for process in self._living():
            process.skew = process.database.cut_off_until = 0.0
            self._world.thaw(process.loop)
            process.loop.steps_left = None
        if "reload" in self.character.kinds:
            self._use(self._stage.settings)

    # -- processes

    def _living(self) -> list[Process]:
        return [process for process in self._stage.processes if not process.loop.is_dead]

    def _pick(self, dice: random.Random) -> Process | None:
        living = self._living()
        return dice.choice(living) if living else None

    def _kill(self, dice: random.Random) -> None:
        if (victim := self._pick(dice)) is not None:
            victim.loop.steps_left = dice.randrange(50)

    def _lose_machine(self, dice: random.Random) -> None:
        if (victim := self._pick(dice)) is not None:
            victim.kill("its machine is gone", silently=True)

    def _freeze(self, dice: random.Random) -> None:
        """Freeze a process for less or for more than a lease."""
        if (victim := self._pick(dice)) is not None:
            seconds = dice.choice((dice.uniform(0.5, 3.5), dice.uniform(5, 60)))
            victim.loop.frozen_until = self._world.now + seconds

    def _cut_off(self, dice: random.Random) -> None:
        """Hold up all requests of a process to the store, for less or for more than a lease."""
        if (victim := self._pick(dice)) is not None:
            victim.database.cut_off_until = self._world.now + dice.choice((dice.uniform(0.5, 3), dice.uniform(3, 15)))

    def _crash_loop(self, dice: random.Random) -> None:
        """Kill processes every few hundred milliseconds, for up to two minutes."""
        pause, until = dice.uniform(0.1, 5.0), self._world.now + dice.uniform(20, 120)

        def strike() -> None:
            if self._world.now < until and not self._world.is_healed:
                for process in self._living():
                    process.loop.steps_left = dice.randrange(20)
                self._world.later(pause * dice.uniform(0.5, 1.5), strike)

        strike()

    def _restart(self, dice: random.Random) -> None:
        if (victim := self._pick(dice)) is not None:
            victim.stop()

    def _upgrade(self, dice: random.Random) -> None:
        """Replace processes one after the other. The new version's schema may be unknown to the old one's code."""
        around = self._stage.around
        around.version += 1
        store, version = around.store, around.version
        if dice.random() < 0.5:
            self._world.later(dice.uniform(0, 5), store.require, version)
        for process in self._living():
            self._world.later(dice.uniform(0, 10), process.stop)

    # -- clocks

    def _skew(self, dice: random.Random) -> None:
        if (victim := self._pick(dice)) is not None:
            victim.skew = dice.choice((dice.uniform(-5, 5), dice.uniform(-1, 1) * HARMLESS_SKEW_SECONDS))

    def _jump(self, dice: random.Random) -> None:
        if (victim := self._pick(dice)) is not None:
            self._world.had_jump = True
            victim.skew = dice.uniform(-3, 3) * DAY_SECONDS
            self._world.later(dice.uniform(1, 20), setattr, victim, "skew", 0.0)

    # -- surroundings

    def _trouble(self, kind: str, dice: random.Random) -> None:
        """Make the store, the disk or the storage of objects unusable for a while."""
        around, until = self._stage.around, self._world.now + dice.choice((dice.uniform(1, 5), dice.uniform(5, 60)))
        match kind:
            case "store away":
                around.store.away_until = until
            case "store slow":
                around.store.slow_until = until
            case "store read-only":
                around.store.is_read_only = True
                self._world.later(until - self._world.now, setattr, around.store, "is_read_only", False)
            case "store fails over":
                around.store.doubt_until = self._world.now + dice.choice((0.05, 0.5))
                around.store.away_until = self._world.now + dice.uniform(1, 15)
            case "objects away":
                around.objects.away_until = until
            case "objects full":
                around.objects.full_until = until
            case _:
                around.disk.full_until = until

    def _lose_vendor(self, dice: random.Random) -> None:
        doubles = list(self._stage.around.doubles.values())
        dice.choice(doubles).down_until = self._world.now + dice.choice((dice.uniform(1, 5), dice.uniform(5, 60)))

    def _press(self, dice: random.Random) -> None:
        """Let the kernel end every child of a process for a while."""
        if (victim := self._pick(dice)) is not None:
            for pool in victim.pools:
                pool.pressed_until = self._world.now + dice.uniform(0.1, 5)

    def _reload(self, dice: random.Random) -> None:
        self._use(self._stage.variants(dice))

    def _use(self, settings: Settings) -> None:
        self._stage.use(settings)
        for process in self._living():
            process.reload(settings)
