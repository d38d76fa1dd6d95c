"""Pins the images that ours is built from, and those of the compose file, to the digests that their tags have now.

python tools/release/pin_images.py [FOLDER]

It needs docker with buildx, and a network. Run it again to renew the digests.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = {
    "Dockerfile": re.compile(r"^(ARG \w+_IMAGE=)(\S+)$", re.MULTILINE),
    "deploy/compose.yaml": re.compile(r"^(\s+image: )(?!penstock:)(\S+)$", re.MULTILINE),
}
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def ask_digest(image: str) -> str:
    """Return the digest that a registry has for an image's tag, over all platforms."""
    docker = shutil.which("docker")
    if docker is None:
        sys.exit("docker is not here: install it with buildx, or pin the images on a machine that has it.")
    command = [docker, "buildx", "imagetools", "inspect", "--format", "{{json .Manifest.Digest}}", image]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    found = DIGEST.search(done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"The registry told no digest of {image}: {done.stderr.strip() or done.stdout.strip()}")
    return found[0]


def pin(folder: Path) -> None:
    """Write each reference as name:tag@digest; nothing is written unless all digests are known."""
    pinned: dict[Path, str] = {}
    for name, pattern in FILES.items():
        text = (folder / name).read_text("utf-8")
        for image in sorted({found[1].partition("@")[0] for found in pattern.findall(text)}):
            whole = f"{image}@{ask_digest(image)}"
            text = re.sub(rf"(?<=[ =]){re.escape(image)}(@\S+)?$", whole, text, flags=re.MULTILINE)
            print(whole)
        pinned[folder / name] = text
    for path, text in pinned.items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    pin(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
