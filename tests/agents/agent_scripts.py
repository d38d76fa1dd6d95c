"""Scripts of a model that works with a coding agent: read two files, edit one by what they say, run commands."""

import json
import re
from dataclasses import replace

from doubles.scripted.turns import Call, Refused, Request, Script, Turn

FILES = {
    "notes.txt": 'Grüße, 世界! 👋 A "quoted" \\ line\nnumber = 4711\nlast line\n',
    "unit.txt": "unit: kelvin\n",
}
PROMPT = "Add one to the number in notes.txt, and name its unit."
LAST_WORDS = "Done. The file has 3 lines; “4712 kelvin” is in it. 🎉"
EDITED = 'Grüße, 世界! 👋 A "quoted" \\ line\nnumber = 4712 kelvin, \\ "42" ✓\nlast line\n'
COUNTED = "3\n"
"""What the agent's last command leaves in `lines.txt`."""
REASONING = ("I read the notes first. 🤔", "Two things at once.", "Now I edit.", "Now I check.", "")
TOOL_CALLS = 5


def find_number(request: Request) -> str:
    """Add one to the number that the first tool read."""
    found = re.search(r"number = (\d+)", request.results[0].text)
    assert found is not None, request.results
    return str(int(found[1]) + 1)


def find_new_line(request: Request) -> str:
    """Make the new line of what the first three tools gave."""
    unit = re.search(r"unit: (\w+)", request.results[1].text)
    product = re.search(r"product: (\d+)", request.results[2].text)
    assert unit is not None, request.results
    assert product is not None, request.results
    return f'number = {find_number(request)} {unit[1]}, \\ "{product[1]}" ✓'


def play(*acts: Script) -> Script:
    """Play one act after another: which is next is known by the number of results so far.

    The second act calls two tools, one after the other if the request does not want two at once. Gemini has no word for
    that wish: there the gateway keeps the first call only.
    """

    def script(request: Request) -> Turn:
        if not request.tools:
            return Turn("Nothing to do.")  # a request beside the conversation, for a title or so
        done = (0, 1, 1, 2, 3, 4)[len(request.results)]
        turn = acts[done](request)
        calls = turn.calls[1:] if len(request.results) == 2 else turn.calls
        return Turn(turn.text, calls if request.is_parallel else calls[:1], REASONING[done])

    return script


def finish(request: Request) -> Turn:
    """Say the last words, if the last command gave what it should."""
    assert re.search(r"lines: 3\b", request.results[4].text), request.results
    return Turn(LAST_WORDS)


# -- Claude Code's tools


def _read(request: Request, name: str) -> Call:
    folder = re.search(r"orking directory: (\S+)", f"{request.system}\n{request.texts}")
    assert folder is not None, request.system
    return request.tool("Read").call(file_path=f"{folder[1]}/{name}")


def _edit(request: Request) -> Turn:
    path = _read(request, "notes.txt").arguments
    assert isinstance(path, dict)
    edit = request.tool("Edit").call(**path, old_string="number = 4711", new_string=find_new_line(request))
    return Turn(calls=(edit,))


def bash(request: Request, command: str) -> Call:
    """Run a command with Claude Code."""
    return request.tool("Bash").call(command=command, description="Run a command")


COUNT = 'wc -l < notes.txt | tr -d " " > lines.txt && echo "lines: $(cat lines.txt)"'
claude_code = play(
    lambda request: Turn("I look at the notes. 🙂", (_read(request, "notes.txt"),)),
    lambda request: Turn(calls=(_read(request, "unit.txt"), bash(request, 'echo "product: $((6 * 7))"'))),
    _edit,
    lambda request: Turn("And I check.", (bash(request, COUNT),)),
    finish,
)


# -- Codex's tools: by the model's name it offers functions, a custom tool for patches, or one tool that runs JavaScript


def shell(request: Request, command: str) -> Call:
    """Run a command with Codex."""
    arguments = {"cmd": command, "yield_time_ms": 30_000}  # the longest that it waits for a command
    if request.offers("exec_command"):
        return request.tool("exec_command").call(**arguments)
    return _javascript(request, f"text((await tools.exec_command({json.dumps(arguments)})).output)")


def _javascript(request: Request, source: str) -> Call:
    return request.tool("exec").call_with(source)


def _patch(request: Request) -> Turn:
    patch = f"""*** Begin Patch
*** Update File: notes.txt
@@
-number = 4711
+{find_new_line(request)}
*** End Patch
"""
    if request.offers("apply_patch"):
        return Turn(calls=(request.tool("apply_patch").call_with(patch),))
    if request.offers("exec_command"):
        return Turn(calls=(shell(request, f"apply_patch <<'END'\n{patch}END\n"),))
    return Turn(calls=(_javascript(request, f"text(await tools.apply_patch({json.dumps(patch)}))"),))


codex = play(
    lambda request: Turn("I look at the notes. 🙂", (shell(request, "cat notes.txt"),)),
    lambda request: Turn(calls=(shell(request, "cat unit.txt"), shell(request, 'echo "product: $((6 * 7))"'))),
    _patch,
    lambda request: Turn("And I check.", (shell(request, COUNT),)),
    finish,
)


# -- trouble


def stumble(script: Script, *troubles: str) -> Script:
    """Let the first requests fail, each in one way: `overloaded`, or `cut` in the middle of its answer."""
    waiting = list(troubles)

    def play_on(request: Request) -> Turn:
        if not waiting:
            return script(request)
        if waiting.pop(0) == "overloaded":
            raise Refused("Overloaded", 503)
        return replace(script(request), is_cut=True)

    return play_on
