"""The guide of deployment: its commands run, in a copy of what they name, beside a cluster of their own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from engine.config.loader import configuration_from_texts
from engine.config.options import HA_QUORUM
from ha.zookeeper_hosts import parse_hosts
from tests.deployment.chart import helm
from tests.docs.pages import FOLDER, blocks_of
from tests.entrypoint.conftest import Installation
from tests.tidy.imports import ROOT

PAGE = FOLDER / "operating" / "deployment.md"
BLOCKS = blocks_of(PAGE.read_text(encoding="utf-8"), "bash")


@pytest.mark.processes
@pytest.mark.skipif(helm() is None or shutil.which("kubectl") is None, reason="Helm or kubectl is not installed")
def test_the_commands_of_the_guide_run(tmp_path):
    installation = Installation(tmp_path)
    work = tmp_path / "work"
    shutil.copytree(ROOT / "conf", work / "conf", ignore=shutil.ignore_patterns("*.secret", "*.token"))
    (work / "bin").symlink_to(ROOT / "bin")
    environment = installation.environment | {"PATH": f"{Path(helm()).parent}:{ROOT / 'bin'}:{os.environ['PATH']}"}
    started = installation.run("jobmanager", "start")
    try:
        assert started.returncode == 0, started.stderr
        said = []
        for block in BLOCKS:
            if not block.reason:
                words = ["bash", "-euo", "pipefail", "-c", block.code]
                done = subprocess.run(
                    words, check=False, cwd=work, env=environment, capture_output=True, text=True, timeout=120
                )
                assert done.returncode == 0, f"{block.code}\n{done.stderr}"
                said.append(done.stdout)
    finally:
        assert installation.run("jobmanager", "stop").returncode == 0
    copied, *said = said
    assert "drey-conf/config.yaml" in copied.splitlines()
    assert said[0] == "ok\nok\n" and len(said) >= 6
    manifests = [text for text in said[2:] if "kind: " in text]
    kinds = [{each["kind"] for each in yaml.safe_load_all(text) if each} for text in manifests]
    assert {"StatefulSet", "Secret", "Namespace"} <= kinds[0] and "Deployment" in kinds[1] and "Job" in kinds[-1]
    for name in ("cluster.secret", "read.token", "users.tokens"):
        assert (work / "secrets" / name).stat().st_mode & 0o777 == 0o600


def test_the_configurations_of_the_guide_are_known():
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"), "yaml")
    assert len(blocks) >= 2
    for block in blocks:
        texts = {key: str(value) for key, value in yaml.safe_load(block.code).items()}
        configuration = configuration_from_texts(texts)
        parse_hosts(configuration.get(HA_QUORUM))


def test_what_cannot_run_here_names_what_there_is():
    text = "\n".join(block.code for block in BLOCKS if block.reason)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert "docker compose run --rm client flink-run" in text and "client" in services
    assert {f"drey-{name}.service" for name in ("jobmanager", "taskmanager", "historyserver")} == {
        path.name for path in (ROOT / "conf" / "systemd").iterdir()
    }
    manifest = (ROOT / "conf" / "kubernetes" / "drey.yaml").read_text()
    assert "service/drey " in text and "\n  name: drey\n" in manifest
    assert "drey-jobmanager-0 " in text and "\n  name: drey-jobmanager\n" in manifest
