"""Where the built-in engines' tests find the weights."""

import os
from pathlib import Path

import platformdirs
import pytest


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder with all weights: of PENSTOCK_WEIGHTS, else where `penstock models pull` puts them."""
    named = os.environ.get("PENSTOCK_WEIGHTS")
    folder = Path(named) if named else Path(platformdirs.user_data_dir("penstock")) / "weights"
    if not (folder / "minilm.onnx").is_file():
        pytest.fail(f"No weights in {folder}: run `penstock models pull`, or set PENSTOCK_WEIGHTS to their folder.")
    return folder
