"""The image and the compose file: linted, as there is nothing here that could run them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from known_names import DEPLOY, ROOT, check_command, check_variables

from penstock.settings.tables import load
from penstock.web.api.operations import router

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
NGINX = (DEPLOY / "nginx.conf").read_text()
OURS = ("gateway-1", "gateway-2", "worker-1", "worker-2")
PATHS = {route.path for route in router.routes if hasattr(route, "path")}


def service(name: str) -> dict[str, Any]:
    return COMPOSE["services"][name]


# -- the image


def test_the_dockerfile_has_no_known_weakness():
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout + done.stderr == ""


def test_the_image_runs_as_nobody_in_particular_and_serves():
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", final, re.MULTILINE)
    assert 'ENTRYPOINT ["penstock"]\nCMD ["serve"]' in final
    check_command(["serve"])
    (probe,) = re.findall(r"http://127\.0\.0\.1:8787(/\w+)", final)
    assert probe in PATHS
    check_variables(re.findall(r"\b([A-Z][A-Z_]+)=", final.partition("\nENV ")[2].partition("\n#")[0]))


def test_everything_that_the_image_copies_is_given_to_the_builder():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name.removeprefix("./")
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("engines", ["yes", "no"])
def test_the_lock_without_engines_is_whole_and_hashed(engines):
    """What the image's own command leaves of the lock."""
    (step,) = re.findall(r"^RUN (case .*?wanted\.lock) \\\n", DOCKERFILE, re.MULTILINE | re.DOTALL)
    command = step.replace("> wanted.lock", "").replace("\\\n", "")
    environ = {"ENGINES": engines, "PATH": os.environ["PATH"]}
    wanted = subprocess.run(["sh", "-c", command], cwd=ROOT, env=environ, capture_output=True, text=True, check=True)  # noqa: S603, S607
    lock = (ROOT / "requirements.lock").read_text()
    if engines == "yes":
        assert wanted.stdout == lock
        return
    names = set(re.findall(r"^([\w.-]+)==", wanted.stdout, re.MULTILINE))
    left_out = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)) - names
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    engine_packages = {re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"]["local"]}  # type: ignore[index]
    assert left_out == engine_packages | {"flatbuffers"}
    needed = {re.match(r"[\w.-]+", line)[0] for name in names for line in _requires(name)}  # type: ignore[index]
    assert needed & left_out == set()
    assert wanted.stdout.count("==") <= wanted.stdout.count("--hash=sha256:")


def _requires(name: str) -> list[str]:
    try:
        return [line for line in metadata.requires(name) or () if "extra ==" not in line]
    except metadata.PackageNotFoundError:  # of another platform
        return []


FAKE_DOCKER = """#!/bin/sh
for last; do :; done
case "$last" in *@*) exit 3 ;; esac
printf '"sha256:%s"' "$(printf '%s' "$last" | sha256sum | cut -d ' ' -f 1)"
"""


def _pin(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "release" / "pin_images.py"), str(folder)]
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False)  # noqa: S603


def test_images_are_pinned_to_digests_and_again(tmp_path):
    """By the registry's word only: here a program plays docker."""
    (tmp_path / "deploy").mkdir()
    for name in ("Dockerfile", "deploy/compose.yaml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    assert "docker is not here" in _pin(tmp_path, "/nowhere").stderr
    (tmp_path / "docker").write_text(FAKE_DOCKER)
    (tmp_path / "docker").chmod(0o755)
    for _ in range(2):
        done = _pin(tmp_path, f"{tmp_path}:{os.environ['PATH']}")
        assert done.returncode == 0, done.stderr
        dockerfile = (tmp_path / "Dockerfile").read_text()
        pinned = re.findall(r"^ARG \w+_IMAGE=\S+:\S+@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
        assert len(pinned) == dockerfile.count("_IMAGE=") == 2
        services = yaml.safe_load((tmp_path / "deploy" / "compose.yaml").read_text())["services"]
        assert all(
            re.search(r"@sha256:[0-9a-f]{64}$", services[name]["image"]) for name in services if name not in OURS
        )
        assert len(done.stdout.splitlines()) == len(set(done.stdout.split())) == 6


@pytest.mark.parametrize("path", ["Makefile", "Dockerfile"])
def test_no_package_of_npm_runs_a_script_of_its_own(path):
    lines = [line for line in (ROOT / path).read_text().splitlines() if re.search(r"npm (ci|install)\b", line)]
    assert all("--ignore-scripts" in line for line in lines if not line.startswith("#"))
    for folder in ("console", "tests/agents", "tests/javascript"):
        assert "ignore-scripts=true" in (ROOT / folder / ".npmrc").read_text().splitlines()


# -- compose


def test_compose_is_as_its_specification_says():
    schema = json.loads(
        files("check_jsonschema").joinpath("builtin_schemas", "vendor", "compose-spec.json").read_text(encoding="utf-8")
    )
    jsonschema.Draft7Validator(schema).validate(COMPOSE)


@pytest.mark.parametrize("name", OURS)
def test_our_services_say_nothing_that_the_code_does_not_know(name):
    ours, config = service(name), (DEPLOY / "config.toml").read_text()
    check_command(ours["command"])
    check_variables(ours["environment"], config)
    assert ours["read_only"]
    assert ours["cap_drop"] == ["ALL"]
    assert ours["depends_on"]["database"] == {"condition": "service_healthy"}


def test_gateways_leave_the_jobs_to_workers():
    assert {service(name)["environment"].get("PENSTOCK_JOBS_RUN") for name in OURS[:2]} == {"workers"}
    assert {service(name)["command"][0] for name in OURS[2:]} == {"worker"}
    folders = [volume.partition(":")[0] for name in OURS for volume in service(name)["volumes"]]
    assert len({folder for folder in folders if not folder.startswith("./")}) == len(OURS)


def test_their_environment_is_settings_that_are_read(tmp_path):
    environ = service("gateway-1")["environment"] | {"PENSTOCK_CONFIG": str(DEPLOY / "config.toml")}
    filled = {name: _interpolate(str(value)) for name, value in environ.items()}
    settings = load(None, filled, {"data": tmp_path})
    assert settings.database_url.startswith("postgresql://penstock:x@database/")
    assert settings.assets_url == "s3://penstock"
    assert settings.vendors


def _interpolate(value: str) -> str:
    return re.sub(r"\$\{\w+(?::([?-])([^}]*))?\}", lambda found: found[2] if found[1] == "-" else "x", value)


def test_every_variable_of_compose_is_in_the_example():
    text = (DEPLOY / "compose.yaml").read_text()
    example = set(re.findall(r"^([A-Z][A-Z0-9_]*)=", (DEPLOY / ".env.example").read_text(), re.MULTILINE))
    assert set(re.findall(r"\$\{(\w+)", text)) == example
    for name in re.findall(r"\$\{(\w+):\?", text):
        assert f"\n{name}=\n" in (DEPLOY / ".env.example").read_text(), f"{name} has a secret that everybody knows"


def test_whom_a_service_waits_for_is_there_and_healthy():
    services = COMPOSE["services"]
    for waiting in services.values():
        for name, how in waiting.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[name] or name.startswith("gateway")  # whose image has its own
    named = {volume for one in services.values() for volume in one.get("volumes", ())}
    assert {volume.partition(":")[0] for volume in named if not volume.startswith("./")} == set(COMPOSE["volumes"])
    assert all((DEPLOY / volume.partition(":")[0]).exists() for volume in named if volume.startswith("./"))


def test_no_image_is_whatever_is_newest():
    images = {one["image"] for name, one in COMPOSE["services"].items() if name not in OURS}
    assert all(":" in image and not image.endswith(":latest") for image in images)


def test_the_balancer_knows_the_gateways_and_holds_nothing_back():
    assert set(re.findall(r"server (\S+):8787", NGINX)) == {name for name in COMPOSE["services"] if "gateway" in name}
    for line in ("proxy_buffering off;", "proxy_request_buffering off;", "proxy_http_version 1.1;"):
        assert line in NGINX
    assert "non_idempotent" not in NGINX  # else a POST could be sent twice
    assert NGINX.count("{") == NGINX.count("}")
    assert "location = /metrics" in NGINX
