"""Small real files of every kind that models take, made by code."""

import io
import wave

from PIL import Image

from penstock.simulator import samples


def picture(kind: str = "PNG", colour: str = "red", width: int = 40, height: int = 30) -> bytes:
    """A plain picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(buffer, kind)
    return buffer.getvalue()


def sound(seconds: float = 0.25) -> bytes:
    """A silent WAV."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(int(seconds * 8000) * 2))
    return buffer.getvalue()


def film() -> bytes:
    """A test card of one second."""
    return samples.make_video(64, 48, 1, seed=0)


def model() -> bytes:
    """A gem as a GLB."""
    return samples.make_model(0, None, texture=False)
