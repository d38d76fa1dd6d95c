"""Damages sound bytes, for tests that any damage must be noticed or harmless."""

from hypothesis import strategies as st


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    def mutate(changes: list[tuple[int, int]], cut: int) -> bytes:
        mutated = bytearray(data)
        for position, value in changes:
            mutated[position] = value
        return bytes(mutated[: len(data) - cut])

    change = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255))
    return st.builds(mutate, st.lists(change, max_size=8), st.just(0) | st.integers(0, len(data)))
