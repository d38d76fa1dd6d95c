"""Hints: inputs that say how to make a result rather than which. A model without such a param does without them."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.web.auth import Caller
from penstock.web.facades.neutral import find_param, param_names

LEFT_OUT: Final = "x-penstock-left-out"
"""The header that names them."""
HINTS: Final = frozenset(
    {
        "acceleration", "disable_safety_checker", "enable_prompt_expansion", "enable_safety_checker",
        "enhance_prompt", "expand_prompt", "go_fast", "guidance", "guidance_scale", "megapixels",
        "num_inference_steps", "output_quality", "prompt_optimizer", "prompt_upsampling", "safety_tolerance",
        "sync_mode",
    }
)  # fmt: skip
"""Those that programs for models at Replicate and fal often send."""


def leave_out(caller: Caller, model_id: str, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return the inputs without the hints that the model does not take, and the header that names these."""
    offer = caller.gateway.offers.by_model.get(model_id)
    if offer is None or given.keys().isdisjoint(HINTS):
        return given, {}
    known = param_names(offer.model)
    if not known:  # its params are not known, and the vendor checks them
        return given, {}
    left = {name for name in given if name in HINTS and find_param(name, known) not in known}
    kept = {name: value for name, value in given.items() if name not in left}
    return kept, {LEFT_OUT: ", ".join(sorted(left))} if left else {}
