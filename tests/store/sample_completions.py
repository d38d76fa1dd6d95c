"""Made-up records of chat requests, for tests that ask no vendor."""

from itertools import count
from typing import Any

from penstock.domain.chat import Usage
from penstock.domain.usage import ChatOutcome, Completion

DAY = 19_675  # 2023-11-14
NOON = DAY * 86_400.0 + 43_200
_numbers = count()


def make_completion(**fields: Any) -> Completion:
    """A record of a request that was answered; any field can be given."""
    defaults = {
        "id": f"chat_{next(_numbers):010d}",
        "request_id": "req_1",
        "account_id": "acct_one",
        "key_id": "key",
        "model": "writer",
        "vendor": "upstream",
        "upstream_model": "m",
        "streamed": False,
        "outcome": ChatOutcome.OK,
        "code": "",
        "usage": Usage(10, 20, 3, 4, cache_writes=5, cache_writes_1h=2),
        "cost": 700,
        "created_at": NOON,
        "seconds": 0.5,
        "first_byte_seconds": None,
    }
    return Completion(**(defaults | fields))
