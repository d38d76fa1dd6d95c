"""Begins a vendor: a whole one of a made-up API, and its double, to be changed into a real one.

python tools/vendors/new_vendor.py NAME [--root DIR]        or: make new-vendor NAME=acme
"""

import argparse
import keyword
import re
import sys
from pathlib import Path

TEMPLATES = {
    "src/penstock/vendors/{name}.py": "vendor.py.txt",
    "tests/doubles/{name}.py": "double.py.txt",
}
FOLDER = Path(__file__).parent / "vendor_template"
ALLOWED = re.compile(r"[a-z][a-z0-9_]{0,29}")


def render(template: str, name: str) -> str:
    """A template's text with the vendor's name in it; the templates call it acme."""
    return _read(template).replace("acme", name).replace("Acme", _title(name))


def _read(template: str) -> str:
    return (FOLDER / template).read_text("utf-8")


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def find_problem(name: str, root: Path) -> str | None:
    """Why there can be no such vendor."""
    if not ALLOWED.fullmatch(name) or keyword.iskeyword(name):
        return (
            f"`{name}` is no name for a vendor: use up to 30 small letters, digits and _, beginning with a letter, "
            "and no word of Python's own."
        )
    title = _title(name)
    if any(title in re.findall(r"\w+", _read(template).replace("Acme", "")) for template in TEMPLATES.values()):
        return f"`{name}` is no name for a vendor: its class would be `{title}`, which means something else there."
    if not (root / "src" / "penstock" / "vendors").is_dir():
        return f"{root} does not hold the project: there is no src/penstock/vendors in it."
    taken = [path for path in (root / place.format(name=name) for place in TEMPLATES) if path.exists()]
    if taken:
        return f"{taken[0].relative_to(root)} is there already: take another name, or remove it first."
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Begin a vendor: its file, and its double for the tests.")
    parser.add_argument("name", help="what `type` will be in the settings, such as acme")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="the project's folder")
    given = parser.parse_args()
    problem = find_problem(given.name, given.root)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    for place, template in TEMPLATES.items():
        path = given.root / place.format(name=given.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(template, given.name), "utf-8")
        print(f"wrote {path.relative_to(given.root)}")
    print(f"Next: pytest tests/vendors -k {given.name}, then docs/howto/add-a-vendor.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
