"""Chat requests are counted with their tokens of every kind."""

from store.sample_completions import make_completion

from penstock.domain.chat import Usage
from penstock.observability.metrics import REGISTRY, count_completions


def test_tokens_are_counted_by_kind():
    usage = Usage(10, 20, 3, 4, cache_writes=5, cache_writes_1h=2)
    count_completions([make_completion(model="counted", usage=usage)] * 2)
    kinds = {"prompt": 20, "completion": 40, "cached": 6, "cache_write": 10, "reasoning": 8}
    for kind, number in kinds.items():
        labels = {"model": "counted", "vendor": "upstream", "kind": kind}
        assert REGISTRY.get_sample_value("penstock_chat_tokens_total", labels) == number
