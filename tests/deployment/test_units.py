"""The units of systemd, as systemd itself reads and judges them."""

import os
import re
import shutil
import subprocess

import pytest

from tests.tidy.imports import ROOT

UNITS = sorted((ROOT / "conf" / "systemd").glob("*.service"))
#: exposure of 0 to 100 by ``systemd-analyze security``; without the lines that take rights away it is 92
EXPOSURE_MAX = 25

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def test_there_is_a_unit_for_every_process():
    assert [unit.stem for unit in UNITS] == ["drey-historyserver", "drey-jobmanager", "drey-taskmanager"]


@pytest.fixture(params=UNITS, ids=lambda unit: unit.stem)
def unit(request, tmp_path):
    """A unit whose program is that of this checkout, which is looked for."""
    made = tmp_path / request.param.name
    made.write_text(request.param.read_text().replace("/opt/drey/", f"{ROOT}/"))
    return made


def analyze(*words):
    environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning", "LC_ALL": "C"}
    return subprocess.run(
        ["systemd-analyze", *words], check=False, capture_output=True, text=True, env=environment, timeout=60
    )


def test_systemd_finds_nothing_wrong_with_a_unit(unit):
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    own = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert own == [] and done.returncode == 0, done.stderr


def test_systemd_finds_what_is_wrong(unit):
    """The test above would pass if nothing were looked for."""
    unit.write_text(unit.read_text().replace("NoNewPrivileges=yes", "NoNewPrivilege=yes"))
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert "NoNewPrivilege" in done.stderr


def test_a_unit_gives_few_rights(unit):
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if line.startswith("✗"))
    assert re.search(r"Overall exposure level for .*: \d\.\d OK", done.stdout), done.stdout[-300:]
