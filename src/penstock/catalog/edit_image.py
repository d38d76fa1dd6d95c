"""Pictures from other pictures and a prompt: the params that all such models share."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from penstock.catalog.file_input import FileSlot, ImageInput, OneOrMore
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Nested
from penstock.catalog.text_to_image import PictureParams, expect_picture

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


def make_edit_image(model_id: str, title: str) -> GenerationModel:
    """Return a model with these params."""
    return GenerationModel(
        id=model_id,
        kind="image",
        title=title,
        params=EditImageParams,
        expect=expect_picture,
        example={"prompt": "Give the fox a blue scarf", "images": [{"url": "https://example.com/fox.png"}]},
    )


MODELS = (make_edit_image("edit_image", "Edit a picture"),)
