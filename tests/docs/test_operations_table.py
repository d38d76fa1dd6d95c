"""The tables of operations on the page of vendors: they say what the catalogue and the doubles' tests hold."""

import re
from pathlib import Path

import pytest
from vendors.media import test_film_inputs, test_solid_family

from penstock.catalog.model_family import OPERATIONS
from penstock.vendor_api.audio import Speaker, Transcriber
from penstock.vendors import load_vendor
from penstock.vendors.comfyui import CATALOGUE

PAGE = (Path(__file__).parents[2] / "docs" / "vendors.md").read_text()
FILM_ROWS = ("first frame", "both frames", "references", "extend", "edit")


def table(head: str) -> dict[str, dict[str, str]]:
    """The cells of one table by row and column."""
    block = PAGE[PAGE.index(f"\n| {head} |") + 1 :].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
    columns = [re.sub("`", "", name) for name in rows[0][1:]]
    return {row[0].strip("`"): dict(zip(columns, row[1:], strict=True)) for row in rows[2:]}


def served(vendor: str) -> set[str]:
    return {each.model.id for each in load_vendor(vendor).models}


def says_yes(cell: str) -> bool:
    assert re.match(r"(yes|no)\b", cell), cell
    return cell.startswith("yes")


def test_the_table_of_3d_is_the_catalogues():
    cells = table("3D: model")
    assert list(cells) == list(OPERATIONS)
    for operation, row in cells.items():
        for vendor, cell in row.items():
            assert says_yes(cell) == (operation in served(vendor)), (operation, vendor)


@pytest.mark.parametrize("kind", test_solid_family.VENDORS)
def test_every_3d_operation_of_a_vendor_is_tried(kind):
    tried = {name.partition(" ")[0] for name in test_solid_family.VENDORS[kind]}
    tried |= {"animate"} if kind in test_solid_family.OWN_RIGS else set()  # in a chain
    assert tried == set(OPERATIONS) & served(kind.vendor)


def test_the_table_of_films_is_what_is_tried():
    cells = table("Films: input")
    assert list(cells) == list(FILM_ROWS)
    own = {param.values[0] for param in test_film_inputs.OWN}
    tried = {
        kind.vendor: set(operations) | ({"extend"} if kind in own else set())
        for kind, (_, operations) in test_film_inputs.OPERATIONS.items()
    }
    for name, row in cells.items():
        assert set(row) == set(tried)
        for vendor, cell in row.items():
            assert says_yes(cell) == (name in tried[vendor]), (name, vendor)


def test_the_table_of_pictures_is_the_catalogues():
    cells = table("Pictures: model")
    for name in ("text_to_image", "edit_image"):
        for vendor, cell in cells[name].items():
            assert says_yes(cell) == (name in (CATALOGUE if vendor == "comfyui" else served(vendor))), (name, vendor)


def test_the_table_of_sound_is_that_of_the_protocols():
    cells = table("Sound: endpoint")
    for path, protocol, method in (
        ("/v1/audio/speech", Speaker, "speak"),
        ("/v1/audio/transcriptions", Transcriber, "transcribe"),
    ):
        assert hasattr(protocol, method)
        for vendor, cell in cells[path].items():
            assert says_yes(cell) == hasattr(load_vendor(vendor), method), (path, vendor)
