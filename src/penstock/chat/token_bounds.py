"""Bounds the tokens that a vendor claims: by what it was sent, what it was allowed to say and what it said."""

import re
from typing import Final

from msgspec import structs

from penstock.domain.chat import Ask, Usage

HIDDEN_PROMPT_TOKENS: Final = 1_024
"""Tokens that a vendor may add to a prompt: its template, and instructions of its own."""
UNSEEN_TOKENS: Final = 131_072
"""Tokens that a choice may have beyond what is shown, as reasoning: no model is known to say more at once."""
PICTURE_TOKENS: Final = 50_000
DOCUMENT_TOKENS: Final = 1_000_000
"""Tokens of a picture, and of a document, film or recording, however short its data or address is."""
LIMITS: Final = ("max_completion_tokens", "max_tokens")
ELSEWHERE: Final = ("cachedContent", "container", "extra_body", "google", "web_search_options")
"""Fields by which a vendor reads what was not sent with the request."""
BYTES_PER_CHARACTER: Final = 4

_PICTURE: Final = re.compile(rb'"(?:image_url|input_image|image)"')
_DOCUMENT: Final = re.compile(rb'"(?:file|input_file|document|input_audio|audio_url|video_url)"')


def bound_claim(claim: Usage, ask: Ask, seen: int) -> Usage:
    """Return the claim, cut to what can be true of an answer of which so many bytes were seen."""
    prompt, completion = claim.prompt, claim.completion
    if prompt > ask.size:  # hardly ever: a token has a byte at least
        prompt = min(prompt, _most_asked(ask))
    if completion > (seen if ask.max_tokens is None else ask.max_tokens):
        completion = min(completion, _most_answered(ask, seen))
    if (prompt, completion) == (claim.prompt, claim.completion):
        return claim
    return structs.replace(
        claim,
        prompt=prompt,
        completion=completion,
        cached=min(claim.cached, prompt),
        reasoning=min(claim.reasoning, completion),
        estimated=True,
    )


def borne_out(claim: Usage, ask: Ask, seen: int) -> Usage:
    """Return as much of a claim as what was sent and seen bears out: nothing hidden is believed."""
    return Usage(min(claim.prompt, ask.size), min(claim.completion, seen))


def _most_asked(ask: Ask) -> int:
    messages = bytes(ask.fields["messages"])
    attached = len(_PICTURE.findall(messages)) * PICTURE_TOKENS + len(_DOCUMENT.findall(messages)) * DOCUMENT_TOKENS
    elsewhere = sum(DOCUMENT_TOKENS for name in ELSEWHERE if name in ask.fields)
    return ask.size + HIDDEN_PROMPT_TOKENS + attached + elsewhere


def _most_answered(ask: Ask, seen: int) -> int:
    choices: int = ask.field("n") or 1
    if ask.max_tokens is None:
        return seen + UNSEEN_TOKENS * choices
    most = max(ask.field(name) or 0 for name in LIMITS) * choices
    return most + (ask.size if "prediction" in ask.fields else 0)  # what was predicted wrongly is counted too
