"""Downloads the tarball of an npm package on a machine without npm: `python -m penstock_engines.npm_tarball`."""

import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

REGISTRY = "npm_config_registry"
"""Variable with the address of the registry, as npm spells it."""
TIMEOUT_SECONDS = 60


def download(package: str, version: str, folder: Path) -> None:
    """Write the tarball into the folder, under the name that npm gives it. The caller checks its bytes."""
    registry = os.environ.get(REGISTRY, "").rstrip("/")
    base = package.rpartition("/")[2]
    name = f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"
    address = f"{registry}/{package}/-/{base}-{version}.tgz"
    if not address.startswith(("https://", "http://")):
        raise ValueError(f"error: {registry} is no address of a registry.")
    with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as reply, (folder / name).open("wb") as file:  # noqa: S310
        shutil.copyfileobj(reply, file)


def main() -> None:
    """Download the package that the arguments name: package, version and folder."""
    package, version, folder = sys.argv[1:]
    try:
        download(package, version, Path(folder))
    except urllib.error.HTTPError as error:
        sys.exit(f"error: the registry answered {error.code} {error.reason}")
    except urllib.error.URLError as error:
        sys.exit(f"error: ECONNREFUSED or ENOTFOUND: {error.reason}")
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
