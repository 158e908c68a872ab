"""A JobManager that dies is started again, and its leadership is handed over at once."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.entrypoint.pid_file import PidFile, process_identity
from engine.rpc.credentials import Credentials
from tests.entrypoint.conftest import ROOT, WAIT_S, until
from tests.entrypoint.test_high_availability import leader_of, overview, pid_at
from tests.ha.quorum import Quorum, free_ports, needs_quorum

pytestmark = pytest.mark.processes

#: a resident supervisor; without its modules Python takes 11 MiB
SUPERVISOR_MB_MAX = 24


@pytest.fixture
def supervised(installation):
    """Without a quorum: one that dies begins anew."""
    installation.configure(jobmanager__supervisor__enabled="true", **{"jobmanager.supervisor.restart-delay": "10 ms"})
    return installation


def line_of(installation):
    """Return the one line of the pid file, None while there is none."""
    lines = PidFile(installation.pid_file("jobmanager"), "jobmanager").read()
    return lines[0] if lines else None


def start(installation, *words):
    done = installation.run("jobmanager", "start", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.search(r"Started jobmanager (\d+) at ", done.stdout)[1])


def test_the_line_of_the_pid_file_is_the_childs_and_stop_ends_both(supervised):
    pid = start(supervised)
    line = line_of(supervised)
    assert supervised.pids("jobmanager") == [pid] == [line.pid]
    assert line.supervisor not in (0, pid) and line.living_pids == (line.supervisor, pid)
    resident = psutil.Process(line.supervisor).memory_info().rss
    assert resident < SUPERVISOR_MB_MAX << 20
    assert supervised.slots() == 0
    done = supervised.run("jobmanager", "stop")
    assert done.stdout == f"Stopping jobmanager daemon (pid: {pid}) on host {os.uname().nodename}.\n"
    assert line.living_pids == () and not supervised.pid_file("jobmanager").exists()
    assert "ends with exit code 0" in supervised.log_text("jobmanager")
    assert list(supervised.tmp.iterdir()) == []


def test_one_that_dies_is_started_again_under_its_supervisor_and_keeps_its_log(supervised):
    pids = [start(supervised)]
    supervisor = line_of(supervised).supervisor
    for number in (signal.SIGKILL, signal.SIGABRT):
        os.kill(pids[-1], number)
        until(lambda: line_of(supervised).pid != pids[-1], "the next one")
        until(lambda: supervised.slots() == 0, "its service")
        pids.append(line_of(supervised).pid)
        assert line_of(supervised).supervisor == supervisor
    log = supervised.log_text("jobmanager")
    assert f"process {pids[0]} was ended by SIGKILL; the next one starts in 0.01 s" in log
    assert f"process {pids[1]} was ended by SIGABRT" in log
    assert log.count("starting jobmanager, process") == 3
    assert supervised.run("jobmanager", "stop").returncode == 0
    assert process_identity(supervisor) == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_that_is_asked_to_end_is_not_started_again(supervised, number):
    pid = start(supervised)
    line = line_of(supervised)
    os.kill(pid, number)
    until(lambda: line.living_pids == (), "the end of both")
    assert supervised.log_text("jobmanager").count("starting jobmanager, process") == 1


def test_a_unit_that_is_stopped_or_restarted_ends_both_with_exit_code_0(supervised):
    Credentials.load_or_create(supervised.conf / "cluster.secret")
    words = ["-m", "engine.entrypoint.scripts", "jobmanager", "start-foreground"]
    for _ in range(2):  # the second one is that of a unit which was restarted
        unit = subprocess.Popen(
            [sys.executable, *words], env=supervised.environment, cwd=ROOT, stderr=subprocess.DEVNULL
        )
        until(lambda: line_of(supervised) is not None and supervised.slots() == 0, "its service")
        line = line_of(supervised)
        assert line.supervisor == unit.pid, "the process that systemd asks to end"
        unit.terminate()
        assert unit.wait(WAIT_S) == 0
        until(lambda line=line: line.living_pids == (), "the end of both")


def test_stop_during_the_pause_ends_the_supervisor_and_a_start_counts_it(installation):
    delays = dict.fromkeys(("jobmanager.supervisor.restart-delay", "jobmanager.supervisor.restart-delay.max"), "1 h")
    installation.configure(jobmanager__supervisor__enabled="true", **delays)
    pid = start(installation)
    line = line_of(installation)
    os.kill(pid, signal.SIGKILL)
    until(lambda: "the next one starts in 3600 s" in installation.log_text("jobmanager"), "the pause")
    assert line.living_pids == (line.supervisor,)
    second = installation.run("jobmanager", "start")
    assert "[INFO] 1 instance(s) of jobmanager are already running" in second.stdout
    assert installation.run("jobmanager", "stop-all").returncode == 0
    assert line.living_pids == () and line_of(installation) is None


def test_the_child_ends_with_a_supervisor_that_was_killed(supervised):
    pid = start(supervised)
    supervisor = line_of(supervised).supervisor
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: process_identity(pid) == "", "the end of the child")
    log = supervised.log_text("jobmanager")
    assert "ends with exit code 0" in log
    assert f"jobmanager stops with its supervisor, process {supervisor}, which has ended" in log


@pytest.mark.parametrize("name", ["jobmanager", "taskmanager"])
def test_the_units_for_systemd_are_right_and_run_what_is_there(name, tmp_path):
    unit = ROOT / "conf" / "systemd" / f"drey-{name}.service"
    lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and line[0] != "#")
    command, verb = lines["ExecStart"].split()
    assert (ROOT / "bin" / Path(command).name).is_file() and verb == "start-foreground"
    assert lines["Restart"] == "on-failure" and lines["RestartPreventExitStatus"] == "3"
    if shutil.which("systemd-analyze") is None:
        return
    # With paths that are there: what remains is what systemd does not understand.
    text = unit.read_text().replace(command, "/bin/true").replace("User=drey", f"User={os.environ.get('USER', 'root')}")
    (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
    )
    assert unit.name not in done.stderr, done.stderr


def test_one_that_dies_too_often_is_given_up(supervised):
    pid = start(supervised, "-D", "jobmanager.supervisor.restart-attempts=0")
    line = line_of(supervised)
    os.kill(pid, signal.SIGKILL)
    until(lambda: line.living_pids == (), "the end of the supervisor")
    assert "given up after 0 attempts" in supervised.log_text("jobmanager")


def test_a_start_that_fails_shows_why_and_is_not_repeated(supervised):
    Credentials.load_or_create(supervised.conf / "cluster.secret")
    done = supervised.run("jobmanager", "start", "-D", "jobmanager.bind-host=no-such-host.invalid")
    assert done.returncode == 1
    assert "did not start: cannot listen on no-such-host.invalid" in done.stderr
    assert "log: " in done.stderr and "    " in done.stderr
    assert supervised.pids("jobmanager") == []
    assert supervised.log_text("jobmanager").count("starting jobmanager, process") == 1


def test_one_that_is_configured_wrongly_when_it_is_started_again_ends_the_supervisor(supervised):
    pid = start(supervised)
    line = line_of(supervised)
    supervised.configure(jobmanager__supervisor__enabled="true", rest__prt=1)
    os.kill(pid, signal.SIGKILL)
    until(lambda: process_identity(line.supervisor) == "", "the end of the supervisor")


def test_in_the_foreground_one_interrupt_of_the_terminal_ends_both_in_peace(supervised):
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.entrypoint.scripts", "jobmanager", "start-foreground"],
        env=supervised.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: (supervised.conf / "cluster.secret").exists() and supervised.slots() == 0, "its service")
        child = line_of(supervised).pid
        assert line_of(supervised).supervisor == process.pid != child
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "jobmanager ends with exit code 0" in output
    assert "ended by force" not in output
    assert process_identity(child) == ""


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    made = Quorum(tmp_path_factory.mktemp("quorum"), 1)
    made.start()
    yield made
    made.stop()


@needs_quorum
def test_leadership_moves_long_before_the_session_of_the_killed_leader_would_end(installation, quorum, tmp_path):
    first = free_ports(2)
    ports = (first, first + 1)
    installation.configure(
        **{
            "high-availability.type": "ZOOKEEPER",
            "high-availability.cluster-id": tmp_path.name,
            "high-availability.zookeeper.quorum": quorum.hosts,
            # The server grants no more than a minute; what is waited for below takes longer than that without hands.
            "high-availability.zookeeper.client.session-timeout": "60 s",
        }
    )
    for port in ports:
        start(installation, "localhost", str(port))
    for _ in range(2):
        until(lambda: leader_of(ports) is not None, "a leader")
        leader = leader_of(ports)
        standby = sum(ports) - leader
        killed = pid_at(installation, leader)
        os.kill(killed, signal.SIGKILL)
        until(lambda port=standby: overview(port)[0] == 200, "the next leader", timeout_s=40.0)
        until(lambda: sum(overview(port)[0] != 0 for port in ports) == 2, "the one that is started again")
        number = next(n for n in range(2) if f"of process {killed} is closed" in installation.log_text("jobmanager", n))
        assert f"process {killed} was ended by SIGKILL" in installation.log_text("jobmanager", number)
    assert installation.run("jobmanager", "stop-all").returncode == 0
    assert list(installation.tmp.iterdir()) == []
