"""A demonstration without network: unchanged clients, a pipeline on dying machines, a crowd, and proof of origin.

python tools/demo/run.py        (or `make demo`)

It ends with receipts, and non-zero if one of them is false.
"""

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

import httpx
from acts import Receipts, ask_crowd, call_clients, check_origin, make_fox, read_books
from rich.console import Console
from stage import Stage

out: Final = Console(highlight=False)


@dataclass(slots=True)
class Show:
    """The acts in their order, with their times."""

    receipts: Receipts = field(default_factory=Receipts)

    async def run(self, folder: Path) -> bool:
        """Return whether every receipt is true."""
        begun = time.monotonic()
        stage = Stage(folder)
        try:
            await self._act("Start PostgreSQL, a gateway, two workers and a vendor", stage.start())
            key = await stage.make_key("demo")
            async with httpx.AsyncClient(base_url=stage.gateway.url, timeout=120) as http:
                http.headers["authorization"] = f"Bearer {key}"
                await self._act("Nine unchanged clients, one key", call_clients(stage, key, self.receipts, out))
                title = "A sentence becomes a picture, a model and a film, while machines die"
                await self._act(title, make_fox(stage, http, self.receipts, out))
                await self._act("A crowd against one dollar, in four dialects", ask_crowd(stage, self.receipts, out))
                await self._act("Where does this file come from?", check_origin(stage, http, self.receipts, out))
                await self._act("Read the books", read_books(stage, http, self.receipts))
        except Exception:
            out.print_json(json.dumps(stage.log_tail()))
            raise
        finally:
            await stage.end()
        out.print(f"\n[bold]Receipts[/] after {time.monotonic() - begun:.0f} s")
        for name, is_true, figure in self.receipts.lines:
            out.print(
                f"  [{'green' if is_true else 'bold red'}]{'✓' if is_true else '✗'}[/] {name}: {figure}", soft_wrap=True
            )
        return self.receipts.are_true

    async def _act(self, title: str, act: object) -> None:
        begun = time.monotonic()
        out.print(f"\n[bold]{title}[/]")
        await act  # pyright: ignore[reportGeneralTypeIssues]
        out.print(f"  [dim]{time.monotonic() - begun:.1f} s[/]")


def main() -> None:
    """Run it in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        is_true = asyncio.run(Show().run(Path(folder)))
    sys.exit(0 if is_true else 1)


if __name__ == "__main__":
    main()
