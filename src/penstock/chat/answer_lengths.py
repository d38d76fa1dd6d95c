"""Learn how many tokens the answers of a chat model have."""

from collections import OrderedDict, deque

LENGTHS = 32
FIRST_GUESS = 1_000
MAX_LENGTHS = 10_000


class Lengths:
    """How many tokens the latest answers to each account had, by chat model; those used longest ago are forgotten."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[tuple[str, str], deque[int]] = OrderedDict()

    def add(self, account_id: str, model: str, tokens: int) -> None:
        """Learn from an answer."""
        place = (account_id, model)
        known = self._tokens.get(place)
        if known is None:
            known = self._tokens[place] = deque(maxlen=LENGTHS)
            if len(self._tokens) > MAX_LENGTHS:
                self._tokens.popitem(last=False)
        known.append(tokens)

    def longest(self, account_id: str, model: str) -> int | None:
        """The longest of the latest; None before the first."""
        known = self._tokens.get((account_id, model))
        return max(known) if known else None

    def likely(self, account_id: str, model: str) -> int:
        """More than most answers will have: twice the longest of the latest."""
        longest = self.longest(account_id, model)
        return FIRST_GUESS if longest is None else 2 * longest + 16
