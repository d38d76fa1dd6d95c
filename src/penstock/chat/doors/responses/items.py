"""Input items of a Responses request as messages of the chat dialect."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

from penstock.chat.doors.responses.tools import ToolTable, write_input
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals
from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

ROLES: Final = ("user", "assistant", "system", "developer")
ITEMS: Final = (
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
)
DROPPED: Final = frozenset({"id", "type", "call_id", "status"})
"""Fields of a call that are no arguments."""
SEALED_NAME: Final = "reasoning.encrypted_content"


class Conversation:
    """Collects messages. Items of the assistant that follow each other become one message."""

    def __init__(self, table: ToolTable) -> None:
        self.messages: list[Json] = []
        self.left_out: list[str] = []
        self._table = table
        self._assistant: Json | None = None
        self._contents: list[Json] = []
        self._images: list[Json] = []

    def add_text(self, role: str, text: str) -> None:
        """Add a message of plain text."""
        self._close()
        self.messages.append({"role": role, "content": text})

    def add_all(self, items: Iterable[Any], place: str) -> None:
        """Add the messages of items."""
        for index, item in enumerate(items):
            self._add(item, f"{place}[{index}]")
        self._close()

    def _add(self, item: Any, place: str) -> None:
        match item:
            case {"role": str(role)} if item.get("type", "message") == "message":
                self._add_message(role, item.get("content"), place)
            case {"type": "reasoning"}:
                self._reason(item)
            case {"type": "function_call", "name": str(name)}:
                self._call(item, place, self._name(item, name), _text(item.get("arguments"), f"{place}.arguments"))
            case {"type": "custom_tool_call", "name": str(name)}:
                text = _text(item.get("input"), f"{place}.input")
                self._call(item, place, self._name(item, name), write_input(text))
            case {"type": str(kind), "call_id": str()} if kind.endswith("_output"):
                self._answer(item, place)
            case {"type": str(kind)}:
                self._add_other(item, kind, place)
            case _:
                raise _unsupported(place, "an item without a type")

    def _add_other(self, item: Json, kind: str, place: str) -> None:
        """Add a call of a tool that chat does not know, as a call of a function with its name."""
        if kind == "additional_tools":
            return  # they are among the tools
        if kind.endswith("_call") and isinstance(item.get("call_id"), str):
            arguments = {name: value for name, value in item.items() if name not in DROPPED}
            self._call(item, place, kind.removesuffix("_call"), write_json(arguments).decode())
        elif kind.endswith(("_call", "_output")) or kind.startswith("mcp_"):
            self.left_out.append(f"input.{kind}")  # done by the vendor's own tools
        else:  # also items that stand for others which only their vendor has, such as `item_reference`
            raise _unsupported(f"{place}.type", kind)

    def _name(self, item: Json, name: str) -> str:
        namespace = item.get("namespace")
        return self._table.name_of(name, namespace if isinstance(namespace, str) else None)

    # -- the assistant's

    def _open(self) -> Json:
        if self._assistant is None:
            self._flush_images()
            self._assistant = {"role": "assistant"}
        return self._assistant

    def _close(self) -> None:
        """End the assistant's message."""
        message, contents = self._assistant, self._contents
        self._assistant, self._contents = None, []
        if message is not None and (contents or "tool_calls" in message):
            self.messages.append(message | {"content": _join_texts(contents)})
        elif message is not None and len(message) > 1:
            self.left_out.append("reasoning")  # nothing was said after it
        self._flush_images()

    def _flush_images(self) -> None:
        """Add pictures of tool outputs after the outputs: tool messages hold only text."""
        if self._images:
            self.messages.append({"role": "user", "content": self._images})
            self._images = []

    def _reason(self, item: Json) -> None:
        message = self._open()
        sealed = item.get("encrypted_content")
        if isinstance(sealed, str) and seals.is_seal(sealed):
            message.setdefault("sealed_reasoning", []).append(sealed)
        elif sealed:
            self.left_out.append(SEALED_NAME)
        texts = [piece.get("text") for name in ("summary", "content") for piece in _objects(item.get(name))]
        text = "\n\n".join(text for text in texts if isinstance(text, str) and text)
        if text:
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n\n{text}" if before else text

    def _call(self, item: Json, place: str, name: str, arguments: str) -> None:
        call_id = _text(item.get("call_id"), f"{place}.call_id")
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._open().setdefault("tool_calls", []).append(call)

    # -- the others'

    def _add_message(self, role: str, content: Any, place: str) -> None:
        if role not in ROLES:
            allowed = ", ".join(f"'{each}'" for each in ROLES)
            raise InvalidRequest(
                f"Invalid value: '{role[:80]}'. Supported values are: {allowed}.",
                param=f"{place}.role",
                code="invalid_value",
            )
        pieces = _read_content(content, f"{place}.content")
        if role == "assistant":
            self._open()
            self._contents += pieces
            return
        self._close()
        joined = content if isinstance(content, str) else _join_texts(pieces) if role != "user" else _simplify(pieces)
        self.messages.append({"role": role, "content": joined})

    def _answer(self, item: Json, place: str) -> None:
        """Add the output of a tool."""
        images, self._images = self._images, []  # after all outputs
        self._close()
        output = item.get("output", item.get("tools"))
        match output:
            case str(text):
                pass
            case [*pieces] if all(_is_content(piece) for piece in pieces):
                read = _read_content(pieces, f"{place}.output")
                text = "\n".join(piece["text"] for piece in read if piece["type"] == "text")
                images += [piece for piece in read if piece["type"] != "text"]
            case _:
                text = write_json(output).decode()
        self._images = images
        self.messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})


# -- contents


def _read_content(content: Any, place: str) -> list[Json]:
    """Return the parts of a content in the chat dialect."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InvalidRequest(
            f"Invalid type for '{place}': expected a string or an array of parts.", param=place, code="invalid_type"
        )
    pieces = cast("list[Any]", content)
    return [_read_piece(piece, f"{place}[{index}]") for index, piece in enumerate(pieces)]


def _read_piece(piece: Any, place: str) -> Json:
    match piece:
        case {"type": "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(refusal)}:
            return {"type": "refusal", "refusal": refusal}
        case {"type": "input_image", "image_url": str(url)}:
            detail = {"detail": piece["detail"]} if piece.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case {"type": "input_file", "file_data": str(data)}:
            name = {"filename": piece["filename"]} if piece.get("filename") else {}
            return {"type": "file", "file": {**name, "file_data": data}}
        case {"type": "input_image" | "input_file" as kind}:
            wanted = "image_url" if kind == "input_image" else "file_data"
            raise InvalidRequest(
                f"Unsupported value: '{place}' has no '{wanted}'. Files that are stored elsewhere are not supported.",
                param=place,
                code="unsupported_value",
                suggestion=f"Send it as '{wanted}', such as a data: URI in base64.",
            )
        case {"type": "input_audio", "input_audio": {**audio}}:
            return {"type": "input_audio", "input_audio": audio}
        case {"type": str(kind)}:
            raise _unsupported(f"{place}.type", kind)
        case _:
            raise _unsupported(place, "a part without a type")


def _is_content(piece: Any) -> bool:
    match piece:
        case {"type": "input_text" | "output_text" | "text" | "input_image" | "input_file"}:
            return True
        case _:
            return False


def _objects(value: Any) -> list[Json]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _simplify(pieces: list[Json]) -> str | list[Json]:
    """Return one text as such, because every vendor takes that."""
    return pieces[0]["text"] if len(pieces) == 1 and pieces[0]["type"] == "text" else pieces


def _join_texts(pieces: list[Json]) -> str | list[Json] | None:
    return _simplify(pieces) if pieces else None


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"Invalid type for '{place}': expected a string.", param=place, code="invalid_type")
    return value


def _unsupported(place: str, value: Any) -> InvalidRequest:
    return InvalidRequest(
        f"Unsupported value: '{place}' does not support '{str(value)[:80]}' with this model.",
        param=place,
        code="unsupported_value",
        suggestion=f"Send items of the types {', '.join(ITEMS)}.",
    )
