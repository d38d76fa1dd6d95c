"""Speech: a text read aloud, and a sound written down; the params that all such models share."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from penstock.catalog.file_input import FileParams, FileSlot, GivenInput
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Nested, Number, Params, Text

MAX_TEXT_CHARACTERS: Final = 20_000
MIN_SPEED, MAX_SPEED = 0.25, 4.0
Language = Annotated[str, StringConstraints(strict=True, pattern="^[a-z]{2,3}$")]


class TextToSpeechParams(Params):
    """Params of models that read a text aloud."""

    text: Annotated[
        str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARACTERS)
    ] = Field(description=f"the text, 1 to {MAX_TEXT_CHARACTERS} characters after trimming")
    voice: Text | None = Field(
        default=None, description="the vendor's name of a voice; its first when absent", min_length=1, max_length=100
    )
    instructions: Annotated[str, StringConstraints(strict=True, max_length=4000)] | None = Field(
        default=None, description="how to say it, where the vendor takes directions"
    )
    speed: Number | None = Field(
        default=None,
        description="how many times as fast as usual",
        ge=MIN_SPEED,
        le=MAX_SPEED,
        json_schema_extra={"default": 1},
    )
    language: Language | None = Field(default=None, description="code of the language; found when absent")
    output_format: Literal["mp3", "wav", "opus", "flac"] | None = Field(
        default=None, description="format of the sound", json_schema_extra={"default": "mp3"}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: an MP3 at the usual speed."""
        return {"speed": 1.0, "output_format": "mp3"} | super().resolved()


class SpeechInput(GivenInput):
    """A sound, or a film with sound."""

    type: Literal["mp3", "wav", "flac", "ogg", "m4a", "webm", "audio", "mp4", "mov", "video"] | None = Field(
        default=None, description="type of the sound or film; detected when absent"
    )


class SpeechToTextParams(FileParams):
    """Params of models that write down what is said."""

    nested: ClassVar[Nested] = {"audio": SpeechInput}
    files: ClassVar = (FileSlot("audio", kinds=("audio", "video")),)

    audio: SpeechInput = Field(description="the sound, or a film with sound")
    language: Language | None = Field(default=None, description="code of the language; found when absent")
    prompt: Annotated[str, StringConstraints(strict=True, max_length=2000)] | None = Field(
        default=None, description="words that may occur, as a hint"
    )
    response_format: Literal["json", "text", "verbose_json", "srt", "vtt"] | None = Field(
        default=None, description="format of the transcript", json_schema_extra={"default": "json"}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: a transcript as JSON."""
        return {"response_format": "json"} | super().resolved()


def speech_model(model_id: str, title: str) -> GenerationModel:
    """Return a model that reads texts aloud."""
    example: Mapping[str, Any] = {"text": "A penstock feeds water to a turbine.", "output_format": "mp3"}
    return GenerationModel(id=model_id, kind="audio", title=title, params=TextToSpeechParams, example=example)


def transcription_model(model_id: str, title: str) -> GenerationModel:
    """Return a model that writes down what is said."""
    example: Mapping[str, Any] = {"audio": {"url": "https://example.com/speech.mp3"}, "response_format": "json"}
    return GenerationModel(id=model_id, kind="text", title=title, params=SpeechToTextParams, example=example)


MODELS = (
    speech_model("hibari_text_to_speech", "Hibari: text to speech"),
    transcription_model("whisper_speech_to_text", "Whisper base: speech to text"),
)
