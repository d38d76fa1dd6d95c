"""Run the contract suite of the media vendors and print a table, vendor by case: how many passed of how many.

python tools/vendors/contract_table.py
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
SUITES = ("tests/vendors/test_media_contract.py", "tests/vendors/test_contract.py")
NAME = re.compile(r"test_(\w+)\[(.+)\]")


def run() -> list[tuple[str, str, bool]]:
    """Every test of the suites: its case, its label, and whether it passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", f"--junitxml={report}"]
        subprocess.run([*command, *SUITES], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)  # noqa: S603  our own
        found = [(test.get("name", ""), len(test) == 0) for test in ET.parse(report).iter("testcase")]  # noqa: S314  our own
    return [(match[1], match[2], passed) for name, passed in found if (match := NAME.fullmatch(name))]


def main() -> None:
    vendors = sorted(path.stem for path in (ROOT / "tests" / "doubles").glob("*.py") if path.stem != "media")
    counts: Counter[tuple[str, str, bool]] = Counter()
    for case, label, passed in run():
        words = re.split(r"[-.]", label)
        for vendor in vendors:
            if vendor in words:
                counts[vendor, case.replace("_", " "), passed] += 1
                break
    cases = list(dict.fromkeys(case for _, case, _ in counts))
    print(f"| case | {' | '.join(vendors)} |\n|---|{'---|' * len(vendors)}")
    for case in cases:
        cells = []
        for vendor in vendors:
            good, bad = counts[vendor, case, True], counts[vendor, case, False]
            cells.append(f"{good}/{good + bad}" if good + bad else "-")
        print(f"| {case} | {' | '.join(cells)} |")
    lines = [(ROOT / "src/penstock/vendors" / f"{vendor}.py").read_text().count("\n") for vendor in vendors]
    print(f"| lines of the vendor's file | {' | '.join(map(str, lines))} |")
    sys.exit(1 if any(not passed for _, _, passed in counts) else 0)


if __name__ == "__main__":
    main()
