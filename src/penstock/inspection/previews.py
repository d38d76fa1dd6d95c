"""Makes small previews of pictures; blocking, for the process pool."""

import base64
import io
from typing import Final

from penstock.domain.files import MAX_SIDE, Source, opened, sniff
from penstock.domain.job_errors import BadOutput

LIBRARIES: Final = {
    "make_preview": tuple(f"PIL.{name}ImagePlugin" for name in ("Bmp", "Gif", "Jpeg", "Png", "Ppm", "WebP", "Tiff"))
}
"""Modules that the function imports; the child loads them first, as a confined process may not."""
MAX_PREVIEW_BYTES: Final = 45_000
"""As text it must fit into a child's answer."""
TRIES: Final = ((512, 80), (512, 60), (384, 60), (256, 60), (128, 50))
"""Longest side in pixels and JPEG quality; the first that is small enough is taken."""


def make_preview(source: Source) -> str:
    """Return a small JPEG of a picture as base64."""
    from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: PLC0415 - a quick start

    readers = {
        "jpeg": JpegImagePlugin.JpegImageFile,
        "png": PngImagePlugin.PngImageFile,
        "webp": WebPImagePlugin.WebPImageFile,
    }
    with opened(source) as file:
        kind = sniff(file.read(16))
        file.seek(0)
        if kind is None:
            raise BadOutput("The file is no picture.")
        Image.MAX_IMAGE_PIXELS = MAX_SIDE * MAX_SIDE
        with readers[kind](file) as image:
            image.thumbnail((512, 512))
            picture = Image.new("RGB", image.size, "white")
            rgba = image.convert("RGBA")
            picture.paste(rgba, mask=rgba.getchannel("A"))
    for side, quality in TRIES:
        picture.thumbnail((side, side))
        written = io.BytesIO()
        picture.save(written, "JPEG", quality=quality)
        if written.tell() <= MAX_PREVIEW_BYTES:
            return base64.b64encode(written.getvalue()).decode()
    raise BadOutput("The picture cannot be made small.")
