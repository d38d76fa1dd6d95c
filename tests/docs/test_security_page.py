"""The threat model promises no defence that no test proves."""

import re

from named_tests import NAMED, ROOT, check_proofs, rows_of

PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = rows_of(PAGE, "| Asset |")


def test_every_row_has_its_proof():
    assert len(ROWS) > 40
    for row in ROWS:
        assert row.count(" | ") == 4, row
        assert NAMED.search(row), row
    check_proofs(PAGE)


def test_whoever_finds_a_fault_finds_where_to_report_it():
    for text in (PAGE, (ROOT / "SECURITY.md").read_text()):
        assert "Report a vulnerability" in text
        assert not re.search(r"[\w.]+@[\w.]+\.\w+", text), "no address that nobody reads"
    for name in ("README.md", "docs/index.md"):
        assert "security.md" in (ROOT / name).read_text().lower()
