"""Runs the matrix of doors and vendors, and prints the passed cases of each cell: `python tests/doors/matrix.py`."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

COLUMNS = {"chat": "openai chat", "responses": "openai responses", "anthropic": "anthropic", "gemini": "gemini"}
ROWS = {"chat": "chat completions", "messages": "Messages", "responses": "Responses"}
_CELL = re.compile(r"test_a_cell\[(\w+)-(\w+)-(.+)\]$")


class Tally:
    """Counts the cases of each cell."""

    def __init__(self) -> None:
        self.passed: Counter[tuple[str, str]] = Counter()
        self.expected: Counter[tuple[str, str]] = Counter()
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Count what is expected."""
        self.expected.update(find_cell(item.nodeid)[:2] for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what passed."""
        door, vendor, case = find_cell(report.nodeid)
        if report.when == "call" and report.passed:
            self.passed[door, vendor] += 1
        elif report.failed:
            self.failed.append(f"{door} to {vendor}: {case}")

    def write(self) -> str:
        """Return the table in Markdown, and the cases that failed."""
        lines = [["", *COLUMNS.values()], ["---"] * 5]
        for door, name in ROWS.items():
            counts = [f"{self.passed[door, vendor]}/{self.expected[door, vendor]}" for vendor in COLUMNS]
            lines.append([name, *counts])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        total = f"{sum(self.passed.values())}/{sum(self.expected.values())} cases passed"
        return "\n".join([table, "", total, *self.failed])


def find_cell(node: str) -> tuple[str, str, str]:
    """Return the door, the vendor and the case of a test."""
    found = _CELL.search(node)
    assert found is not None, node
    return found[1], found[2], found[3]


def main() -> int:
    """Run the matrix and print the table."""
    tally = Tally()
    tests = f"{Path(__file__).with_name('test_matrix.py')}::test_a_cell"
    status = pytest.main(["-q", "--no-header", "--no-summary", tests], [tally])
    sys.stdout.write(f"{tally.write()}\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
