"""`penstock pipeline` and `penstock jobs lineage`: what they print where, and the errors in its words."""

import json
from pathlib import Path
from typing import Any

import pytest
import small_media
from remote_shell import Shell, on_terminal

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "red-fox.json"
QUICK = {"latency": 0.05}
SIMULATED = {
    "picture": {"model": "sim_text_to_image", "params": {"prompt": {"param": "prompt"}, "script": QUICK}},
    "model": {"model": "sim_image_to_model", "params": {"file": {"step": "picture"}, "script": QUICK}},
    "film": {"model": "sim_model_to_video", "params": {"mesh": {"step": "model"}, "script": QUICK}},
}
FOX = {**json.loads(EXAMPLE.read_text()), "steps": SIMULATED}


@pytest.fixture
def shell(stage, key) -> Shell:
    return Shell(stage.url, key)


@pytest.fixture
def fox(tmp_path) -> Path:
    return write(tmp_path, FOX)


def write(folder: Path, plan: Any) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return path


def with_script(name: str, **script: Any) -> dict[str, Any]:
    step = SIMULATED[name]
    changed = {**step, "params": {**step["params"], "script": {**QUICK, **script}}}
    return {**FOX, "steps": {**SIMULATED, name: changed}}


def test_one_command_makes_a_picture_a_model_and_a_film(shell, fox, tmp_path):
    result = shell(f"pipeline run {fox} --watch -o {tmp_path}/out")
    assert result.stdout == f"{tmp_path}/out/film.mp4\n"
    assert "film: running" in result.stderr or "film: succeeded" in result.stderr
    assert "succeeded in" in result.stderr
    record = shell.json(f"pipeline run {fox} --all -o {tmp_path}/all --client-ref mine")
    assert (record["status"], record["client_ref"], record["params"]) == ("succeeded", "mine", {"prompt": "a red fox"})
    assert record["saved"] == [f"{tmp_path}/all/{name}" for name in ("picture.png", "model.glb", "film.mp4")]
    links = shell(f"pipeline run {fox} --all").stdout.splitlines()
    assert len(links) == 3
    assert all("/api/v1/assets/" in link for link in links)


def test_toml_stdin_params_and_files(shell, fox, tmp_path, png):
    (tmp_path / "cat.png").write_bytes(png)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'steps.model = {model = "sim_image_to_model", params = {file = {param = "image"}, script = {latency = 0.05}}}'
    )
    record = shell.json(f"pipeline run {plan} -i image={tmp_path}/cat.png")
    assert record["steps"][0]["jobs"][0]["input"]["file"]["name"] == "cat.png"
    stdin = shell("pipeline run - --param prompt='an owl' --no-wait", typed=fox.read_text()).stdout.strip()
    assert shell.json(f"pipeline watch {stdin}")["params"] == {"prompt": "an owl"}


def test_a_dry_run_prices_all_steps(shell, fox):
    told = shell(f"pipeline run {fox} --dry-run").stdout
    assert "sim_text_to_image" in told
    assert "cost: free" in told
    assert shell.json(f"pipeline run {fox} --dry-run")["jobs"] == 3


def test_it_is_looked_after_later(shell, tmp_path):
    failing = write(tmp_path, with_script("model", ending="failed"))
    refused = shell(f"pipeline run {failing} --idempotency-key fails", 1)
    assert "`model` failed" in refused.stderr
    failed = shell.json(f"pipeline run {failing} --idempotency-key fails", 1)
    assert f"penstock pipeline retry {failed['id']}" in refused.stderr
    assert shell.json("pipeline list --limit 1")[0]["id"] == failed["id"]
    assert failed["id"] in shell("pipeline list").stdout
    listed = shell.json(f"jobs list --pipeline {failed['id']} --status succeeded")
    assert [job["id"] for job in listed] == failed["steps"][0]["job_ids"]
    shown = shell(f"pipeline show {failed['id']}").stdout
    assert "param prompt: a red fox" in shown
    assert shell.json(f"pipeline show {failed['id']}")["status"] == "failed"
    again = shell.json(f"pipeline retry {failed['id']} --from model --no-wait")
    assert again["retry_of"] == failed["id"]
    assert shell.json(f"pipeline watch {again['id']}", 1)["steps"][0]["job_ids"] == failed["steps"][0]["job_ids"]
    assert shell.json(f"pipeline delete {again['id']}") == {"id": again["id"], "deleted": True}
    endless = write(tmp_path, with_script("picture", ending="never"))
    running = shell(f"pipeline run {endless} --no-wait").stdout.strip()
    assert shell.json(f"pipeline watch {running} --timeout 0.1", 6)["id"] == running
    assert "penstock pipeline cancel ID" in shell(f"pipeline delete {running}", 3).stderr
    assert shell(f"pipeline cancel {running}").stdout.startswith(f"{running} cancel")
    assert shell.json(f"pipeline watch {running}", 1)["status"] == "canceled"


def test_templates_are_stored_and_run(shell, fox, tmp_path):
    assert shell(f"pipeline templates put fox {fox}").stdout == "fox version 1\n"
    assert shell.json(f"pipeline templates put fox {write(tmp_path, {'steps': SIMULATED})}")["version"] == 2
    assert "fox" in shell("pipeline templates list").stdout
    assert shell.json("pipeline templates list")[0]["version"] == 2
    (tmp_path / "stored.json").write_text(shell("pipeline templates show fox --template-version 1").stdout)
    stored = shell.json(f"pipeline run {tmp_path}/stored.json --no-wait")
    assert stored["params"] == {"prompt": "a red fox"}
    run = shell.json("pipeline run --template fox --template-version 1 --param prompt=owl")
    assert (run["template"], run["version"], run["params"]) == ("fox", 1, {"prompt": "owl"})
    missing = shell("pipeline run --template fox", 3).stderr
    assert "Add --param NAME=VALUE." in missing
    assert shell.json("pipeline templates delete fox") == {"name": "fox", "deleted": True}
    assert "penstock pipeline templates list" in shell("pipeline run --template fox", 3).stderr


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "has no steps"),
        ('{"steps": {}, "stepz": 1}', "unknown field `stepz`"),
        ('{"steps": 5}', "mapping of steps"),
        ('{"steps": {"a": 5}}', "a should be a mapping"),
        ('{"steps": {}, "params": []}', "`params`"),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused_before_it_is_sent(shell, tmp_path, plan, words):
    path = tmp_path / "plan.json"
    path.write_text(plan)
    assert words in shell(f"pipeline run {path}", 2).stderr


def test_mistakes_are_named_in_words_of_the_command_line(shell, fox, tmp_path):
    assert "either FILE or --template" in shell("pipeline run", 2).stderr
    assert "either FILE or --template" in shell(f"pipeline run {fox} --template fox", 2).stderr
    assert "cannot be read" in shell(f"pipeline run {tmp_path}/none.json", 2).stderr
    assert "cannot be written" in shell(f"pipeline run {fox} -o {fox}", 2).stderr
    assert "write key=value" in shell(f"pipeline run {fox} --param prompt", 2).stderr
    unknown = {"steps": {"picture": {"model": "sim_text_to_image", "params": {"prompt": "x", "promt": "x"}}}}
    told = shell(f"pipeline run {write(tmp_path, unknown)}", 3).stderr
    assert told.startswith('Step `picture`: Unknown param "promt"')
    assert "steps.0" not in told
    assert "penstock pipeline list" in shell("pipeline show pipe_00", 3).stderr


def test_a_lineage_is_a_tree(shell, fox):
    record = shell.json(f"pipeline run {fox}")
    picture, model, film = (step["job_ids"][0] for step in record["steps"])
    told = shell(f"jobs lineage {model}").stdout
    assert told.splitlines() == [
        f"{model}  sim_image_to_model  succeeded  step model of {record['id']}",
        "made from",
        f"└─ file: {picture}  sim_text_to_image  succeeded  step picture of {record['id']}",
        "used by",
        f"└─ mesh: {film}  sim_model_to_video  succeeded  step film of {record['id']}",
    ]
    assert shell(f"jobs lineage {film}").stdout.count("└─") == 2
    assert shell.json(f"jobs lineage {film}")["job"] == film


def test_a_terminal_shows_a_table_of_the_steps(shell, fox, tmp_path):
    shown, code = on_terminal(shell, f"pipeline run {fox} -o {tmp_path}")
    assert code == 0
    for words in ("progress", "sim_model_to_video", "succeeded", f"{tmp_path}/film.mp4"):
        assert words in shown
    slow = write(tmp_path, with_script("picture", latency=60))
    shown, code = on_terminal(shell, f"pipeline run {slow}", ("waiting", "\x03"), (r"\[k\]", "c\n"))
    assert code == 130, shown
    assert "cancel" in shown.rpartition("[k]")[2]


def test_media_files_are_inputs(shell, tmp_path):
    (tmp_path / "tone.wav").write_bytes(small_media.sound())
    steps = {"film": {"model": "sim_text_to_video", "params": {"audio": f"{tmp_path}/tone.wav", "script": QUICK}}}
    record = shell.json(f"pipeline run {write(tmp_path, {'steps': steps})}")
    assert record["steps"][0]["jobs"][0]["input"]["audio"]["name"] == "tone.wav"
