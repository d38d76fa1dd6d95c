"""Recent answer lengths of chat models, in tokens."""

from collections import OrderedDict, deque

ANSWERS_PER_MODEL = 32
FIRST_GUESS_TOKENS = 1_000
MAX_MODELS = 10_000


class AnswerLengths:
    """Tokens of the latest answers, by account and model; entries made longest ago are dropped first."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[tuple[str, str], deque[int]] = OrderedDict()

    def add(self, account_id: str, model: str, tokens: int) -> None:
        """Record the length of an answer."""
        key = (account_id, model)
        known = self._tokens.get(key)
        if known is None:
            known = self._tokens[key] = deque(maxlen=ANSWERS_PER_MODEL)
            if len(self._tokens) > MAX_MODELS:
                self._tokens.popitem(last=False)
        known.append(tokens)

    def longest(self, account_id: str, model: str) -> int | None:
        """Return the length of the longest recent answer; None before the first."""
        known = self._tokens.get((account_id, model))
        return max(known) if known else None

    def likely(self, account_id: str, model: str) -> int:
        """Return a length that most answers will not exceed: about twice the longest recent one."""
        longest = self.longest(account_id, model)
        return FIRST_GUESS_TOKENS if longest is None else 2 * longest + 16
