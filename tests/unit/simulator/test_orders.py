"""Orders that the simulator takes."""

import json
from pathlib import Path

import pytest

from penstock.simulator.upstream import Simulator


class NoLongerOurs(Exception):
    """The process was frozen meanwhile."""


def test_an_order_is_written_only_by_who_is_sure_of_it(tmp_path: Path):
    simulator = Simulator(tmp_path)
    asked: list[int] = []
    body = json.dumps({"reference": "job_1-1", "script": {}, "result": {}}).encode()

    def be_sure() -> None:
        other = Simulator(tmp_path)
        asked.append(other.counts()["orders"])  # as another process sees it
        other.close()
        if len(asked) == 1:
            raise NoLongerOurs

    with pytest.raises(NoLongerOurs):
        simulator.answer("POST", "/orders", body, be_sure)
    assert simulator.counts()["orders"] == 0
    assert simulator.answer("POST", "/orders", body, be_sure)[0] == 201
    assert simulator.counts()["orders"] == 1
    assert asked == [0, 0]
    simulator.close()
