"""Bounds of a vendor's token claim: by the request, by its token limit and by the answer seen."""

import re
from typing import Final

from msgspec import structs

from penstock.domain.chat import CONVERSATIONS, ONE_SHOT, Ask, Usage

HIDDEN_PROMPT_TOKENS: Final = 1_024
"""Tokens that a vendor may add to a prompt: its template and its own instructions."""
UNSEEN_TOKENS: Final = 131_072
"""Hidden tokens of one choice, such as reasoning: no model is known to produce more at once."""
PICTURE_TOKENS: Final = 50_000
DOCUMENT_TOKENS: Final = 1_000_000
"""Tokens of a picture, and of a document, video or recording, however short its data or URL is."""
LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
EXTERNAL_FIELDS: Final = ("cachedContent", "container", "extra_body", "google", "web_search_options")
"""Fields that make a vendor read content from outside the request."""
BYTES_PER_CHARACTER: Final = 4

_PICTURE: Final = re.compile(rb'"(?:image_url|input_image|image)"')
_DOCUMENT: Final = re.compile(rb'"(?:file|input_file|document|input_audio|audio_url|video_url)"')


def bound_claim(claim: Usage, ask: Ask, seen: int) -> Usage:
    """Return the claim, cut to the most that an answer of `seen` bytes can have used."""
    prompt, completion = claim.prompt, claim.completion
    if prompt > ask.size:  # rare: a token has at least one byte
        prompt = min(prompt, _most_asked(ask))
    if completion > (seen if ask.max_tokens is None else ask.max_tokens):
        completion = min(completion, _most_answered(ask, seen))
    if (prompt, completion) == (claim.prompt, claim.completion):
        return claim
    return structs.replace(claim.cut(prompt, completion), estimated=True)


def limit_to_evidence(claim: Usage, ask: Ask, seen: int) -> Usage:
    """Return the part of a claim that the bytes sent and seen prove; hidden tokens are not counted.

    Of the prompt, only the vendor knows which tokens it wrote to its cache.
    """
    writes = Usage(cache_writes=claim.cache_writes, cache_writes_1h=claim.cache_writes_1h)
    return writes.cut(min(claim.prompt, ask.size), min(claim.completion, seen))


def _most_asked(ask: Ask) -> int:
    if ask.dialect in ONE_SHOT:
        return ask.size + HIDDEN_PROMPT_TOKENS  # nothing is attached to texts
    attached = DOCUMENT_TOKENS  # of a large body, whose messages are freed as soon as a vendor answers
    conversation = next((ask.fields[name] for name in CONVERSATIONS if name in ask.fields), None)
    if conversation is not None:
        messages = bytes(conversation)
        attached = len(_PICTURE.findall(messages)) * PICTURE_TOKENS + len(_DOCUMENT.findall(messages)) * DOCUMENT_TOKENS
    external = sum(DOCUMENT_TOKENS for name in EXTERNAL_FIELDS if name in ask.fields)
    return ask.size + HIDDEN_PROMPT_TOKENS + attached + external


def _most_answered(ask: Ask, seen: int) -> int:
    if ask.max_tokens is None:
        return seen + UNSEEN_TOKENS * ask.choices
    most = max(ask.field(name) or 0 for name in LIMITS) * ask.choices
    return most + (ask.size if "prediction" in ask.fields else 0)  # wrong predictions are counted too
