"""The page "How it is tested" names every rule and every planned fault."""

import ast
import re
from pathlib import Path

from simulation.faults import PLANS

SIMULATION = Path(__file__).parents[1]
PAGE = (SIMULATION.parents[1] / "docs" / "testing.md").read_text()


def _find_rules() -> set[str]:
    rules: set[str] = set()
    for path in SIMULATION.rglob("*.py"):
        if path.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("violate"):
                rule = node.args[0]
                if isinstance(rule, ast.Constant) and isinstance(rule.value, str):
                    rules.add(rule.value)
    return rules


def test_every_rule_is_in_the_table():
    rules = _find_rules()
    assert len(rules) > 40
    cells = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
    documented = {rule.strip() for cell in cells for rule in cell.split("·")}
    assert not rules - documented, "add them to the table of rules in docs/testing.md"


def test_every_planned_fault_is_on_the_page():
    missing = [kind for kind in PLANS if f"`{kind}`" not in PAGE]
    assert not missing, "add them to the table of faults in docs/testing.md"
