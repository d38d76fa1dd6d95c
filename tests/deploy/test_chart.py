"""The Helm chart, rendered with many values and held against Kubernetes' own schemas."""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml
from chart_steps import CHART, render
from known_names import check_command, check_variables, metric_names

from penstock.cli.main import app
from penstock.settings.tables import load
from penstock.web.api.operations import router

VERSION = "1.33"
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example.com/penstock", "tag": "9"},
    "imagePullSecrets": [{"name": "pull"}],
    "existingSecret": "mine",
    "environment": {"AWS_ENDPOINT_URL": "https://s3.example.com"},
    "serviceAccount": {"create": False, "name": "theirs"},
    "gateway": {"autoscaling": {"enabled": False}, "disruptionBudget": {"enabled": False}},
    "worker": {"autoscaling": {"kind": "hpa"}},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "traces": {"endpoint": "http://collector:4318"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
KEDA: dict[str, Any] = {
    "worker": {"autoscaling": {"kind": "keda"}, "disruptionBudget": {"enabled": False}},
    "secret": {"PENSTOCK_DATABASE_URL": 'postgresql://u:p"@h/d'},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}},
}
CASES = {"default": {}, "everything": EVERYTHING, "keda": KEDA}
FOREIGN = {"ScaledObject", "ServiceMonitor"}
"""Kinds that Kubernetes itself does not have; their fields are checked below."""


def one(manifests: list[dict[str, Any]], kind: str, ending: str = "") -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind and each["metadata"]["name"].endswith(ending)]
    return found


def container(manifests: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = one(manifests, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_manifest_is_valid(case):
    manifests = render(CASES[case])
    for manifest in manifests:
        if manifest["kind"] not in FOREIGN:
            kubernetes_validate.validate(manifest, VERSION, strict=True)
    names = [(each["kind"], each["metadata"]["name"]) for each in manifests]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("role", ["gateway", "worker"])
def test_pods_are_kept_small_and_probed(case, role):
    manifests = render(CASES[case])
    pod = one(manifests, "Deployment", role)["spec"]["template"]["spec"]
    ours = container(manifests, role)
    check_command(ours["args"])
    paths = {route.path for route in router.routes if hasattr(route, "path")}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert ours[probe]["httpGet"]["path"] in paths
    assert ours["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert pod["securityContext"]["runAsNonRoot"]
    assert ours["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["name"] for mount in ours["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert ours["resources"]["limits"]["memory"]
    check_variables([each["name"] for each in ours["env"]])
    names = [each["name"] for each in ours["env"]]
    assert len(names) == len(set(names))


def test_gateways_have_time_to_drain(tmp_path):
    manifests = render()
    grace = one(manifests, "Deployment", "gateway")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    sleep = int(container(manifests, "gateway")["lifecycle"]["preStop"]["exec"]["command"][1])
    assert grace > load(None, {}, {"data": tmp_path}).server.drain_seconds + sleep + 5


def test_gateways_leave_the_jobs_to_workers():
    manifests = render()
    run = {each["name"]: each.get("value") for each in container(manifests, "gateway")["env"]}
    assert run["PENSTOCK_JOBS_RUN"] == "workers"
    assert container(manifests, "worker")["args"][0] == "worker"


def test_selectors_find_their_pods_and_only_theirs():
    manifests = render(EVERYTHING)
    pods = {role: _labels(one(manifests, "Deployment", role)["spec"]["template"]) for role in ("gateway", "worker")}
    for role, labels in pods.items():
        selector = one(manifests, "Deployment", role)["spec"]["selector"]["matchLabels"]
        assert [name for name, each in pods.items() if selector.items() <= each.items()] == [role]
        assert labels["app.kubernetes.io/component"] == role
    service = one([each for each in manifests if each["metadata"]["name"] == "test"], "Service")
    assert not service["spec"]["selector"].items() <= pods["worker"].items()
    monitored = one(manifests, "Service", "-metrics")
    assert all(monitored["spec"]["selector"].items() <= labels.items() for labels in pods.values())
    wanted = one(manifests, "ServiceMonitor")["spec"]
    assert wanted["selector"]["matchLabels"].items() <= _labels(monitored).items()
    assert wanted["endpoints"][0]["port"] in {port["name"] for port in monitored["spec"]["ports"]}


def _labels(manifest: dict[str, Any]) -> dict[str, str]:
    return manifest["metadata"]["labels"]


def test_workers_scale_on_a_metric_that_there_is():
    keda, hpa = render(KEDA), render(EVERYTHING)
    (trigger,) = one(keda, "ScaledObject")["spec"]["triggers"]
    assert one(keda, "ScaledObject")["spec"]["scaleTargetRef"]["name"] == "test-worker"
    assert re.findall(r"penstock_\w+", trigger["metadata"]["query"])[0] in metric_names()
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    (metric,) = one(hpa, "HorizontalPodAutoscaler", "worker")["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] in metric_names()
    for scaled in (keda, hpa):
        assert "replicas" not in one(scaled, "Deployment", "worker")["spec"]
    assert one(render(), "Deployment", "worker")["spec"]["replicas"] == 2


def test_a_change_of_the_settings_restarts_the_pods():
    def mark(config: str) -> str:
        template = one(render({"config": config}), "Deployment", "gateway")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert mark("a = 1") != mark("a = 2")


def test_the_settings_arrive_as_they_were_written(tmp_path):
    config = '[vendors.a]\ntype = "sim"\n\n[[models]]\nid = "x"\nvendor = "a"\n'
    assert one(render({"config": config}), "ConfigMap")["data"]["config.toml"].strip() == config.strip()
    (tmp_path / "config.toml").write_text(one(render(), "ConfigMap")["data"]["config.toml"])
    assert load(tmp_path / "config.toml", {}, {"data": tmp_path}).vendors
    assert one(render(KEDA), "Secret")["stringData"] == KEDA["secret"]
    assert not [each for each in render(EVERYTHING) if each["kind"] in ("Secret", "ServiceAccount")]


def test_every_value_is_used():
    text = "".join(path.read_text() for path in CHART.glob("templates/*"))
    used = set(re.findall(r"\.Values\.([\w.]+)", text))

    def leaves(value: Any, place: str) -> list[str]:
        if place in used or not isinstance(value, dict) or not value:
            return [place]
        return [leaf for name, item in value.items() for leaf in leaves(item, f"{place}.{name}".lstrip("."))]

    assert set(leaves(yaml.safe_load((CHART / "values.yaml").read_text()), "")) == used


def test_the_chart_is_of_this_version():
    from penstock import __version__  # noqa: PLC0415  named here only

    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__
    assert app.info.name == "penstock"
