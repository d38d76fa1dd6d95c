"""The degradation contract promises nothing that no test proves, and no test here is left out of it."""

from pathlib import Path

from named_tests import NAMED, ROOT, check_proofs, find_tests, rows_of

PAGE = (ROOT / "docs" / "degradation.md").read_text()


def test_every_row_has_its_proof():
    rows = rows_of(PAGE, "| Fault |")
    assert len(rows) > 20
    for row in rows:
        assert NAMED.search(row), row
    check_proofs(PAGE)


def test_every_test_of_a_fault_is_on_the_page():
    named = {name for _, name in NAMED.findall(PAGE)}
    for path in Path(__file__).parent.glob("test_*.py"):
        if path != Path(__file__):
            assert find_tests(path) <= named, path
