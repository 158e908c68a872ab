"""``bin/*.sh`` as a person calls them: a cluster from nothing, usage texts, exit codes."""

import re
import subprocess

import pytest

from tests.entrypoint.conftest import ROOT, installation

pytestmark = pytest.mark.processes

__all__ = ["installation"]


def test_start_cluster_returns_when_all_are_ready_and_stop_cluster_leaves_nothing(installation):
    (installation.conf / "workers").write_text("localhost\nlocalhost\n")
    done = installation.script("start-cluster.sh", "-D", "taskmanager.numberOfTaskSlots=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        f"Started jobmanager {installation.pids('jobmanager')[0]} at http://localhost:{installation.port}"
        in done.stdout
    )
    started = re.findall(r"Started taskmanager (\d+) at localhost:\d+ with 3 slots", done.stdout)
    assert [int(pid) for pid in started] == installation.pids("taskmanager")
    assert len(started) == 2
    assert installation.slots() == 6
    added = installation.script("taskmanager.sh", "start")
    assert added.returncode == 0, added.stdout + added.stderr
    assert "[INFO] 2 instance(s) of taskmanager are already running" in added.stdout
    assert installation.slots() == 8
    stopped = installation.script("stop-cluster.sh")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert stopped.stdout.count("Stopping taskmanager daemon") == 3
    assert stopped.stdout.count("Stopping jobmanager daemon") == 1
    assert [path.suffix for path in installation.pid.iterdir()] == [".epoch"]
    assert list(installation.tmp.iterdir()) == []


def test_a_cluster_whose_job_manager_does_not_start_leaves_nothing(installation):
    installation.configure(**{"jobmanager.bind-host": "no.such.host.invalid"})
    done = installation.script("start-cluster.sh")
    assert done.returncode == 1
    assert "did not start" in done.stderr
    assert [path for path in installation.pid.iterdir() if path.suffix == ".pid"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("jobmanager.sh",),
        ("jobmanager.sh", "begin"),
        ("taskmanager.sh", "restart"),
        ("historyserver.sh",),
        ("start-cluster.sh", "now"),
        ("stop-cluster.sh", "now"),
        ("standalone-job.sh",),
    ],
    ids=" ".join,
)
def test_a_wrong_word_shows_how_a_script_is_called(installation, words):
    done = installation.script(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Usage: {words[0]}")
    assert done.stdout == ""


def test_every_script_says_in_its_head_what_it_is():
    for path in sorted((ROOT / "bin").glob("*.sh")):
        assert re.match(r"#!/usr/bin/env bash\n# [A-Z]", path.read_text()), path
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


FAKE_SSH = """#!/usr/bin/env bash
# The command of another host, run here: options, host, command are noted.
printf '%s\\n' "$@" >>"$SSH_LOG"
exec bash -c "${@: -1}"
"""


def test_workers_on_other_hosts_are_started_and_stopped_over_ssh(installation, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(FAKE_SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    installation.environment |= {
        "PATH": f"{tmp_path / 'bin'}:{installation.environment['PATH']}",
        "SSH_LOG": str(tmp_path / "ssh.log"),
        "DREY_SSH_OPTS": "-p 2222 -o 'ConnectTimeout 5'",
    }
    (installation.conf / "workers").write_text("worker-1.example\n")
    done = installation.script("start-cluster.sh", "-D", "taskmanager.numberOfTaskSlots=4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"worker-1\.example: Started taskmanager \d+ at localhost:\d+ with 4 slots", done.stdout)
    words = (tmp_path / "ssh.log").read_text().splitlines()
    assert words[:5] == ["-n", "-p", "2222", "-o", "ConnectTimeout 5"]
    # Behind them: the first value of an option counts.
    assert words[5:9] == ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    assert words[words.index("worker-1.example") + 1].endswith(
        "bin/taskmanager.sh start -D taskmanager.numberOfTaskSlots=4"
    )
    assert installation.slots() == 4
    stopped = installation.script("stop-cluster.sh")
    assert stopped.returncode == 0
    assert "worker-1.example: " in stopped.stdout
    assert (tmp_path / "ssh.log").read_text().splitlines()[-1].endswith("bin/taskmanager.sh stop-all")
    assert [path.suffix for path in installation.pid.iterdir()] == [".epoch"]


def test_a_host_that_ssh_cannot_reach_is_named_and_the_others_are_started(installation, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text("#!/usr/bin/env bash\necho 'connect: Connection timed out'\nexit 255\n")
    (tmp_path / "bin" / "ssh").chmod(0o755)
    installation.environment |= {"PATH": f"{tmp_path / 'bin'}:{installation.environment['PATH']}"}
    (installation.conf / "workers").write_text("localhost\nfar.example\n")
    done = installation.script("start-cluster.sh", "-D", "taskmanager.numberOfTaskSlots=3")
    assert done.returncode == 1
    assert "far.example: connect: Connection timed out" in done.stdout
    assert "far.example: cannot be reached by ssh, nothing was done there." in done.stderr
    assert installation.slots() == 3
    assert installation.script("stop-cluster.sh").returncode == 1
    assert installation.pids("taskmanager") == installation.pids("jobmanager") == []
