"""Reports of a run: the live line, the totals, and the shortest trace of a broken rule."""

from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from simulation.running.worlds import Outcome, Wish

DAY_SECONDS: Final = 86_400.0
YEAR_SECONDS: Final = 365.25 * DAY_SECONDS


@dataclass
class Totals:
    """Figures over all worlds of a run."""

    begun_at: float = field(default_factory=monotonic)
    worlds: Counter[str] = field(default_factory=Counter[str])
    """Worlds by store."""
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    virtual_seconds: float = 0.0
    cpu_seconds: float = 0.0
    violations: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one world."""
        self.worlds[outcome.wish.store] += 1
        self.counts.update(outcome.counts)
        self.faults.update(outcome.faults)
        self.virtual_seconds += outcome.virtual_seconds
        self.cpu_seconds += outcome.cpu_seconds
        self.violations += outcome.rule is not None

    @property
    def real_seconds(self) -> float:
        """Seconds since the start of the run."""
        return max(monotonic() - self.begun_at, 0.001)

    def line(self) -> str:
        """Return the summary in one line."""
        groups = Counter[str]()
        for kind, number in self.faults.items():
            groups[kind.partition(":")[0]] += number
        faults = ", ".join(f"{group} {number:,}" for group, number in groups.most_common(8))
        return (
            f"{self.real_seconds:,.0f} s: {self.worlds.total():,} seeds, "
            f"{self.counts['jobs submitted']:,} jobs, {self.counts['deaths']:,} deaths, "
            f"{self.faults.total():,} faults ({faults}), "
            f"{self.virtual_seconds / 3600:,.1f} virtual hours, "
            f"{self.virtual_seconds / self.real_seconds:,.0f} times real time, {self.violations} violations"
        )

    def table(self) -> str:
        """Return all figures, one on each line."""
        rows = [("seeds on " + store, f"{number:,}") for store, number in sorted(self.worlds.items())]
        rows += [(name, f"{number:,}") for name, number in sorted(self.counts.items()) if name not in self.faults]
        rows += [(f"fault: {kind}", f"{number:,}") for kind, number in sorted(self.faults.items())]
        rows += [
            ("virtual time", f"{self.virtual_seconds / DAY_SECONDS:,.2f} days"),
            ("real time", f"{self.real_seconds:,.0f} s"),
            ("CPU time of the worlds", f"{self.cpu_seconds:,.0f} s"),
            ("virtual years per hour", f"{self.virtual_seconds / YEAR_SECONDS / self.real_seconds * 3600:,.3f}"),
            ("violations", str(self.violations)),
        ]
        return "\n".join(f"{value:>16}  {name}" for name, value in rows)


def command(wish: Wish) -> str:
    """Return the command that runs this world again."""
    words = [f"make simulate SEED={wish.seed}"]
    plain = Wish(wish.seed)
    if wish.store != plain.store:
        words.append(f"STORE={wish.store}")
    if wish.jobs != plain.jobs:
        words.append(f"JOBS={wish.jobs}")
    if wish.chat != plain.chat:
        words.append(f"CHAT={wish.chat}")
    if wish.seconds != plain.seconds:
        words.append(f"SECONDS={wish.seconds:g}")
    if wish.only is not None:
        words.append(f"ONLY='{', '.join(sorted(wish.only, key=_by_number)) or 'nothing'}'")
    return " ".join(words)


def _by_number(name: str) -> tuple[str, int]:
    place, _, number = name.rpartition("#")
    return place, int(number) if number.isdigit() else 0


def failure(first: Outcome, shortest: Outcome, *, is_repeatable: bool) -> str:
    """Return the report of a broken rule."""
    lines = [
        "",
        f"BROKEN RULE: {first.rule}",
        f"  {first.what.strip()}",
        f"  seed {first.wish.seed} on {first.wish.store}, {len(first.names)} steps",
        f"  after {first.virtual_seconds:,.3f} virtual seconds, digest {first.digest[:16]}",
        f"  again: {command(first.wish)}",
    ]
    if not is_repeatable:
        return "\n".join([*lines, "  NOT REPEATABLE: a second run of this seed differs. Mend that first."])
    lines += [
        f"Shortest trace found: {len(shortest.names)} of {len(first.names)} steps",
        f"  {shortest.what.strip()}",
        *(f"  {step.at:10.3f} s  {step.name or '-':40}  {step.what}" for step in shortest.trace),
        f"Replay: {command(shortest.wish)}",
    ]
    return "\n".join(lines)
