"""Pictures from other pictures and a prompt: the params that all such models share."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from penstock.catalog.file_input import FileSlot, ImageInput, OneOrMore
from penstock.catalog.params import Nested
from penstock.catalog.text_to_image import PictureParams

MAX_IMAGES: Final = 16


class EditImageParams(PictureParams):
    """Params of models that change pictures by a prompt."""

    nested: ClassVar[Nested] = {"images": ImageInput, "mask": ImageInput}
    files: ClassVar = (FileSlot("images", most=MAX_IMAGES), FileSlot("mask"))

    images: Annotated[list[ImageInput], OneOrMore] = Field(
        description="the pictures to change or to combine; the first one is the base",
        min_length=1,
        max_length=MAX_IMAGES,
    )
    mask: ImageInput | None = Field(
        default=None, description="a picture as large as the first one: where it is transparent, the picture is painted"
    )
