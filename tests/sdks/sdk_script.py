"""The model that SDKs talk to: it greets, asks tools about two cities, and follows a schema."""

import json

from doubles.scripted.turns import Refused, Request, Turn

MODEL = "assistant"
GREETING = "Grüße, 世界! 👋 How can I help?"
REASONING = "They greet me, so I greet back. 🤔"
ASKING = "I ask about two cities."
CITIES = ("Zürich", "東京 🗼")
WEATHER = {"city": "Zürich", "degrees": 7}
CUT, OVERLOADED = "Break off, please.", "Be overloaded, please."


def answer(request: Request) -> Turn:
    """Answer by what was asked last."""
    asked = request.texts[-1]
    if asked == OVERLOADED:
        raise Refused("Overloaded", 503)
    if request.schema is not None:
        return Turn(json.dumps(WEATHER))
    if request.results:
        return Turn(heard(request))
    if request.tools:
        tool = request.tool("get_weather")
        return Turn(ASKING, tuple(tool.call(city=city) for city in CITIES), REASONING)
    return Turn(GREETING, reasoning=REASONING, is_cut=asked == CUT)


def heard(request: Request) -> str:
    """Say which results came."""
    return "They said: " + "; ".join(f"{result.name} {result.text}" for result in request.results)


def tell_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f'sun in "{city}"'


def check_heard(said: str) -> None:
    """Both results came back, whole; a dialect may wrap them in JSON."""
    plain = said.replace("\\", "")
    assert all(f"get_weather {tell_weather(city)}" in plain or tell_weather(city) in plain for city in CITIES), said
