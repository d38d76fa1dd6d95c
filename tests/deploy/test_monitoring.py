"""The dashboard and the alerts: every expression is PromQL, about metrics and labels that there are."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from known_names import DEPLOY, OF_PROMETHEUS, ROOT, metric_names

DASHBOARD = json.loads((DEPLOY / "grafana" / "penstock.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
RULES = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RUNBOOK = (ROOT / "docs" / "deploy.md").read_text()
LABEL = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def expressions() -> Iterator[tuple[str, str]]:
    for name, rule in RULES.items():
        yield name, rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("name", "text"), list(expressions()))
def test_an_expression_is_promql_about_what_there_is(name, text):
    known = metric_names()
    plain = text.replace("$__rate_interval", "5m").replace("$__range", "1h")
    promql_parser.parse(plain)
    used = set(re.findall(r"\b(penstock_\w+|process_\w+|up)\b", plain))
    assert used
    assert used - known.keys() - OF_PROMETHEUS == set()
    labels = {"job", "instance"}.union(*(known.get(metric, ()) for metric in used))
    named = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", plain))
    named |= {word.strip() for group in re.findall(r"\bby \(([^)]*)\)", plain) for word in group.split(",")}
    assert named - labels == set()


@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_what_to_do(name):
    rule = RULES[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/deploy.md"
    assert anchor == name.lower()
    section = RUNBOOK.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
    assert len(section.split()) > 15, f"{name} has no runbook"
    kept = set(re.findall(r"\bby \(([^)]*)\)", rule["expr"])) | {"instance"}
    assert set(LABEL.findall(rule["annotations"]["summary"])) <= kept


def test_every_metric_of_ours_is_looked_at():
    text = json.dumps(DASHBOARD) + json.dumps(ALERTS)
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metric_names() if name.startswith("penstock_")}
    unseen = {name for name in families if name not in text}
    assert unseen <= {
        "penstock_key_checks_total",
        "penstock_chat_claims_cut_total",
        "penstock_chat_malformed_events_total",
        "penstock_store_write_batch_size",
    }


def test_panels_do_not_lie_on_each_other():
    places: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place: dict[str, Any] = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert places.setdefault((x, y), panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_legends_show_labels_that_are_kept():
    for panel in PANELS:
        for target in panel["targets"]:
            kept = {
                word.strip() for group in re.findall(r"\bby \(([^)]*)\)", target["expr"]) for word in group.split(",")
            }
            by_process = not re.search(r"\b(sum|max)\b", target["expr"])
            assert set(LABEL.findall(target["legendFormat"])) <= (kept | {"instance"} if by_process else kept)
