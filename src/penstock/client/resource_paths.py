"""Where things are on the server."""

from urllib.parse import quote

from penstock.client.errors import BadInput


def path_to(root: str, *names: str) -> str:
    """A path below a root; a name from elsewhere stays one step of it, whatever it holds."""
    for name in names:
        if name in ("", ".", ".."):
            raise BadInput(f"`{name}` is no id.")
    return "/".join((root, *(quote(name, safe="") for name in names)))
