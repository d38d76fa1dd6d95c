"""Find card numbers and IBANs in texts by their check digits, whatever stands before or after them."""

import re
from collections.abc import Iterator
from typing import Final

CARD_DIGITS: Final = range(19, 12, -1)
"""Lengths of card numbers, the longest first."""
_RUN: Final = re.compile(r"\d(?:[ \-\u00a0]?\d){12,}")
MAX_RUN_DIGITS: Final = 64
"""Longer runs of digits are taken as a whole: every part of them may be a card number."""
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}")
_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        "(..)(..)",
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27"
        "GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24"
        "ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23"
        "ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30",
    )
}
"""By country, the number of letters and digits."""


def find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of card numbers: digits in groups or not, whose last digit is right (Luhn)."""
    for run in _RUN.finditer(text):
        begin = run.start()
        places = [begin + at for at, sign in enumerate(run[0]) if sign.isdigit()]
        if len(places) > MAX_RUN_DIGITS:
            yield run.span()
        else:
            yield from _cards_in(text, places)


def _cards_in(text: str, places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the card numbers among digits that stand together. A number begins and ends with a group."""
    sums = _luhn_sums([int(text[place]) for place in places])
    total, at = len(places), 0
    while at + CARD_DIGITS[-1] <= total:
        is_start = at == 0 or places[at] - places[at - 1] > 1
        length = _card_length(places, sums, at) if is_start else 0
        if length:
            yield places[at], places[at + length - 1] + 1
        at += length or 1


def _card_length(places: list[int], sums: tuple[list[int], list[int]], at: int) -> int:
    """Return the number of digits of the card number that begins here, or 0."""
    total = len(places)
    for length in CARD_DIGITS:
        end = at + length
        is_end = end == total or (end < total and places[end] - places[end - 1] > 1)
        parity = sums[(end - 1) % 2]
        if is_end and (parity[end] - parity[at]) % 10 == 0 and parity[end] - parity[at] > 0:
            return length
    return 0


def _luhn_sums(digits: list[int]) -> tuple[list[int], list[int]]:
    """Return running sums with the digits at odd and at even places doubled, so that each check is one subtraction.

    The last digit of a number and every second one before it count once, the others twice.
    """
    ends_even, ends_odd = [0], [0]
    for at, digit in enumerate(digits):
        doubled = digit * 2 - 9 if digit > 4 else digit * 2
        ends_even.append(ends_even[-1] + (digit if at % 2 == 0 else doubled))
        ends_odd.append(ends_odd[-1] + (digit if at % 2 == 1 else doubled))
    return ends_even, ends_odd


def find_ibans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of IBANs whose check digits are right, with or without spaces."""
    taken = 0
    for found in _IBAN.finditer(text):
        start, length = found.start(), _IBAN_LENGTHS.get(found[1].upper(), 0)
        end = _iban_end(text, start, length) if length and start >= taken else 0
        if end:
            yield start, end
            taken = end


def _iban_end(text: str, start: int, length: int) -> int:
    """Return the end of the IBAN of this length that begins here, or 0."""
    window = text[start : start + 2 * length]
    signs = "".join(window.split())[:length]
    if len(signs) < length or not (signs.isascii() and signs.isalnum()):
        return 0
    turned = signs[4:] + signs[:4]
    if int("".join([str(int(sign, 36)) for sign in turned])) % 97 != 1:
        return 0
    at, left = start, length
    while left:
        left -= not text[at].isspace()
        at += 1
    return at
