"""A model that draws a picture with the tools of an MCP server, and saves it with the agent's own shell."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from agent_scripts import REASONING
from doubles.scripted.turns import Call, Request, Turn

PROMPT = "Draw a boat, and save it as boat.png."
LAST_WORDS = "The boat is in boat.png. 🎉"
IMAGE = "sim_text_to_image"
TOOLS = ("list_models", "generate_image", "get_asset")
ASSET = re.compile(r"http://[^\s\"\\]+/api/v1/assets/[^\s\"\\]+")
JOB = re.compile(r"job_[0-9a-z]{20,}")
SAVE = "import sys, urllib.request as web; open('boat.png', 'wb').write(web.urlopen(sys.argv[1]).read())"
Shell = Callable[[Request, str], Call]


@dataclass(frozen=True, slots=True)
class Painter:
    """A model, which knows the tools of its agent."""

    read: str
    """The agent's tool that reads resources."""
    shell: Shell

    def __call__(self, request: Request) -> Turn:
        """Play the next act: which it is, is known by the number of results so far."""
        if not request.tools:
            return Turn("Nothing to do.")  # a request beside the conversation, for a title or so
        said = [result.text for result in request.results if result.name != "ToolSearch"]
        acts = (self._look, self._generate, self._get, self._read, self._save)
        if len(said) == len(acts):
            return Turn(LAST_WORDS)
        return Turn(calls=(acts[len(said)](request, said),), reasoning=REASONING[0])

    def _look(self, request: Request, said: list[str]) -> Call:
        del said
        if request.offers("list_models"):
            return request.tool("list_models").call(kind="image")
        names = ",".join(f"mcp__penstock__{name}" for name in TOOLS)  # Claude Code looks for tools that it has deferred
        return request.tool("ToolSearch").call(query=f"select:{names},{self.read}", max_results=10)

    def _generate(self, request: Request, said: list[str]) -> Call:
        assert IMAGE in said[0], said
        params = {"prompt": "a boat", "script": {"latency": 0.3}}
        return request.tool("generate_image").call(model=IMAGE, params=params)

    def _get(self, request: Request, said: list[str]) -> Call:
        return request.tool("get_asset").call(job_id=find(JOB, said[1]))

    def _read(self, request: Request, said: list[str]) -> Call:
        uri = f"penstock://jobs/{find(JOB, said[1])}/outputs/0"
        return request.tool(self.read).call(server="penstock", uri=uri)

    def _save(self, request: Request, said: list[str]) -> Call:
        assert "image/png" in said[3], said[3][:2000]
        return self.shell(request, f'{sys.executable} -c "{SAVE}" "{find(ASSET, said[2])}"')


def find(pattern: re.Pattern[str], text: str) -> str:
    """Find what an earlier result says."""
    found = pattern.search(text)
    assert found is not None, text[:2000]
    return found[0]
