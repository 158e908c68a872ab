"""JobManagers and TaskManagers as real processes: started, ready, found, stopped, killed."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.entrypoint.pid_file import PidFile, process_identity
from tests.entrypoint.conftest import ROOT, WAIT_S, until

pytestmark = pytest.mark.processes

JOB_MANAGER_MB_MAX = 80
#: more than the idle process has: other machines have other libraries
TASK_MANAGER_MB_MAX = 140


def started(done, daemon):
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(pid) for pid in re.findall(rf"Started {daemon} (\d+) at ", done.stdout)]


def test_a_job_manager_starts_says_where_it_is_and_stops(installation):
    done = installation.run("jobmanager", "start")
    (pid,) = started(done, "jobmanager")
    assert done.stdout == f"Started jobmanager {pid} at http://localhost:{installation.port}\n"
    assert installation.pids("jobmanager") == [pid]
    assert installation.slots() == 0
    assert psutil.Process(pid).memory_info().rss < JOB_MANAGER_MB_MAX << 20
    assert not {"pyarrow", "cloudpickle"} & mapped_packages(pid)
    stopped = installation.run("jobmanager", "stop")
    assert stopped.returncode == 0
    assert f"Stopping jobmanager daemon (pid: {pid})" in stopped.stdout
    assert process_identity(pid) == ""
    assert not installation.pid_file("jobmanager").exists()
    log = installation.log_text("jobmanager")
    assert "ends with exit code 0" in log
    services = "HeartbeatServices", "HighAvailabilityServices", "BlobServer", "REST", "ResourceManager", "Dispatcher"
    assert all(re.search(rf"starting .*\b{service}\b", log) for service in services)
    assert "ERROR" not in log
    assert list(installation.tmp.iterdir()) == []
    assert installation.run("jobmanager", "stop").stdout.startswith("No jobmanager daemon to stop")


def mapped_packages(pid):
    """Return the packages whose native modules a process has loaded."""
    return set(re.findall(r"site-packages/(\w+)/", Path(f"/proc/{pid}/maps").read_text()))


def test_the_secret_is_made_once_and_for_its_owner_only(installation):
    secret = installation.conf / "cluster.secret"
    started(installation.run("jobmanager", "start"), "jobmanager")
    made = secret.read_bytes()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    installation.run("jobmanager", "stop")
    started(installation.run("jobmanager", "start"), "jobmanager")
    assert secret.read_bytes() == made
    assert made.decode().strip() not in installation.log_text("jobmanager")


def test_a_port_that_is_taken_is_said_and_the_one_who_has_it_lives_on(installation):
    (first,) = started(installation.run("jobmanager", "start"), "jobmanager")
    done = installation.run("jobmanager", "start")
    assert done.returncode == 1
    assert "[INFO] 1 instance(s) of jobmanager are already running" in done.stdout
    assert f"cannot listen on localhost port {installation.port}" in done.stderr
    assert "log: " in done.stderr
    assert installation.pids("jobmanager") == [first]
    assert installation.slots() == 0


@pytest.mark.parametrize("daemon", ["jobmanager", "taskmanager"])
def test_a_start_that_fails_shows_why(installation, daemon):
    installation.configure(taskmanager__numberOfSlots=2)
    done = installation.run(daemon, "start")
    assert done.returncode == 1
    assert "did not start: unknown key 'taskmanager.numberOfSlots'" in done.stderr
    assert "did you mean taskmanager.numberOfTaskSlots?" in done.stderr
    assert not installation.pid_file(daemon).exists()


def test_a_start_shows_what_is_doubtful_of_it(installation):
    (installation.conf / "cluster.secret").write_text("a secret of the tests, of 32 bytes and more")
    (installation.conf / "cluster.secret").chmod(0o600)
    installation.configure(**{"jobmanager.bind-host": "0.0.0.0"})
    done = installation.run("jobmanager", "start")
    started(done, "jobmanager")
    assert "[WARN] jobmanager.rpc.address is localhost, under which only processes of this machine find" in done.stderr
    assert installation.run("jobmanager", "stop").returncode == 0


def test_a_stale_pid_is_neither_counted_nor_killed(installation):
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        installation.pid_file("jobmanager").write_text(f"{bystander.pid}\n")
        (installation.pid / "flink-tester-jobmanager.pid.processes").write_text(f"{bystander.pid} 0 boot/1\n")
        done = installation.run("jobmanager", "start")
        (pid,) = started(done, "jobmanager")
        assert "already running" not in done.stdout
        assert installation.pids("jobmanager") == [pid]
        installation.run("jobmanager", "stop-all")
        assert bystander.poll() is None
    finally:
        bystander.stdin.close()
        bystander.wait()


def test_a_cluster_starts_as_a_whole_and_stop_ends_the_latest(installation):
    (installation.conf / "workers").write_text("localhost\n# a comment\n127.0.0.1\n")
    done = installation.run("cluster", "start")
    assert len(started(done, "jobmanager")) == 1
    first, second = started(done, "taskmanager")
    assert installation.slots() == 4
    for pid in (first, second):
        assert psutil.Process(pid).memory_info().rss < TASK_MANAGER_MB_MAX << 20
        # what threads free goes back to few arenas
        assert psutil.Process(pid).environ()["MALLOC_ARENA_MAX"] == os.environ.get("MALLOC_ARENA_MAX", "2")
    stopped = installation.run("taskmanager", "stop")
    assert f"(pid: {second})" in stopped.stdout
    assert installation.slots() == 2, "one that stops says so"
    (third,) = started(installation.run("taskmanager", "start", "-D", "taskmanager.numberOfTaskSlots=3"), "taskmanager")
    assert installation.pids("taskmanager") == [first, third]
    assert installation.slots() == 5
    assert installation.run("cluster", "stop").returncode == 0
    assert [path.suffix for path in installation.pid.iterdir()] == [".epoch"]
    assert list(installation.tmp.iterdir()) == []


def test_a_cluster_whose_configuration_cannot_be_read_is_stopped_all_the_same(installation):
    started(installation.run("cluster", "start"), "jobmanager")
    with (installation.conf / "config.yaml").open("a") as file:
        file.write("rest.port: 1\n")
    stopped = installation.run("cluster", "stop")
    assert stopped.returncode == 0
    assert "only what runs on this host is stopped" in stopped.stderr
    assert [path.suffix for path in installation.pid.iterdir()] == [".epoch"]


def test_a_cluster_whose_task_manager_cannot_start_says_that_the_job_manager_runs_on(installation):
    done = installation.run("cluster", "start", "-D", "io.tmp.dirs=/proc/nowhere")
    (pid,) = installation.pids("jobmanager")
    assert done.returncode == 1
    assert f"Not all of the cluster runs, but jobmanager {pid} does" in done.stderr
    assert installation.slots() == 0


def test_what_was_killed_is_noticed_at_once_and_found_again(installation):
    (job_manager,) = started(installation.run("jobmanager", "start"), "jobmanager")
    (first,) = started(installation.run("taskmanager", "start"), "taskmanager")
    (second,) = started(installation.run("taskmanager", "start"), "taskmanager")
    os.kill(second, signal.SIGKILL)
    until(lambda: installation.slots() == 2, "the loss of a TaskManager, long before its heartbeats are missed,")
    os.kill(job_manager, signal.SIGKILL)
    until(lambda: installation.slots() == -1)
    started(installation.run("jobmanager", "start"), "jobmanager")
    until(lambda: installation.slots() == 2, "the registration at the next JobManager")
    assert process_identity(first)
    left = list(installation.tmp.iterdir())
    assert left
    installation.run("cluster", "stop")
    started(installation.run("cluster", "start"), "jobmanager")
    assert not any(str(second) in path.name or str(job_manager) in path.name for path in installation.tmp.iterdir())
    installation.run("cluster", "stop")
    assert list(installation.tmp.iterdir()) == []


def test_a_task_manager_waits_for_its_job_manager(installation):
    task_manager = installation.daemon("taskmanager")
    try:
        lines = iter(task_manager.stdout.readline, "")
        assert any("not registered" in line for line in lines)
        started(installation.run("jobmanager", "start"), "jobmanager")
        until(lambda: installation.slots() == 2)
    finally:
        task_manager.terminate()
        rest = task_manager.communicate(timeout=WAIT_S)[0]
    assert task_manager.returncode == 0, rest


#: waits two seconds, and again while the process has not come so far that it says what it waits for
IMPATIENT = """
import sys
from engine.entrypoint import daemon_control, scripts

wait = daemon_control.Launch.wait

def wait_for_news(launch, timeout_s):
    while (outcome := wait(launch, timeout_s)).text == daemon_control.NOT_READY_YET:
        pass
    return outcome

daemon_control.Launch.wait = wait_for_news
scripts.START_TIMEOUT_S = 2.0
sys.exit(scripts.main())
"""


def test_starting_one_without_a_job_manager_says_so_and_leaves_it_looking(installation):
    done = installation.run("taskmanager", "start", command=(sys.executable, "-c", IMPATIENT))
    (pid,) = installation.pids("taskmanager")
    assert done.returncode == 0
    assert done.stderr.startswith(
        f"taskmanager {pid} runs, but has found no JobManager within 2 s and goes on looking: "
    )
    assert f"localhost:{installation.port}" in done.stderr and str(installation.log) in done.stderr
    started(installation.run("jobmanager", "start"), "jobmanager")
    until(lambda: installation.slots() == 2)
    installation.run("cluster", "stop")


#: a JobManager that does nothing for as long as the script waits, as on a machine that is busy with others
BUSY = """
import os
import signal
import sys
from engine.entrypoint import scripts

begin_start = scripts.begin_start

def begin_and_halt(*arguments):
    launch = begin_start(*arguments)
    os.kill(launch.process.pid, signal.SIGSTOP)
    return launch

scripts.begin_start = begin_and_halt
scripts.START_TIMEOUT_S = 0.2
sys.exit(scripts.main())
"""


def test_a_job_manager_that_is_not_ready_in_time_goes_on_starting(installation):
    done = installation.run("jobmanager", "start", command=(sys.executable, "-c", BUSY))
    (pid,) = installation.pids("jobmanager")
    assert done.returncode == 0
    assert done.stderr == (
        f"jobmanager {pid} runs, but is not ready after 0.2 s and goes on starting: it is not ready yet; "
        "it has written no log yet\n"
    )
    os.kill(pid, signal.SIGCONT)
    until(lambda: (installation.conf / "cluster.secret").exists() and installation.slots() == 0, "the JobManager")
    installation.run("cluster", "stop")


def test_one_that_finds_no_job_manager_gives_up(installation):
    task_manager = installation.daemon("taskmanager", "-D", "taskmanager.registration.timeout=200 ms")
    output = task_manager.communicate(timeout=WAIT_S)[0]
    assert task_manager.returncode == 2
    assert "no JobManager took this TaskManager" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_with_exit_code_0(installation, number):
    job_manager = installation.daemon("jobmanager")
    lines = iter(job_manager.stdout.readline, "")
    assert any("leads at" in line for line in lines)
    job_manager.send_signal(number)
    output = job_manager.communicate(timeout=WAIT_S)[0]
    assert job_manager.returncode == 0, output


def test_the_epoch_of_a_job_manager_grows_also_when_the_clock_does_not(installation):
    (installation.pid / "flink-tester-jobmanager.epoch").write_text("9999999999999\n")
    started(installation.run("jobmanager", "start"), "jobmanager")
    assert "under epoch 10000000000000" in installation.log_text("jobmanager")


def test_log_files_of_earlier_runs_are_kept(installation):
    for _ in range(2):
        started(installation.run("jobmanager", "start"), "jobmanager")
        installation.run("jobmanager", "stop")
    (record,) = installation.log.glob("*-audit.log")
    assert record.read_text().count('"what":"start"') == 2, "the record of changes is one for all runs"
    names = sorted(path.name for path in installation.log.iterdir() if path.is_file() and path != record)
    assert [re.sub(r"-0-[^.]*", "-0-host", name) for name in names] == [
        "flink-tester-jobmanager-0-host.log",
        "flink-tester-jobmanager-0-host.log.1",
        "flink-tester-jobmanager-0-host.out",
        "flink-tester-jobmanager-0-host.out.1",
    ]


def test_in_the_foreground_it_logs_to_the_terminal_and_can_be_stopped(installation):
    foreground = subprocess.Popen(
        [sys.executable, "-m", "engine.entrypoint.scripts", "jobmanager", "start-foreground"],
        env=installation.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = iter(foreground.stderr.readline, "")
    assert any("leads at" in line for line in lines)
    assert installation.pids("jobmanager") == [foreground.pid]
    (process,) = PidFile(installation.pid_file("jobmanager"), "jobmanager").read()
    assert process.is_alive
    installation.run("jobmanager", "stop")
    foreground.communicate(timeout=WAIT_S)
    assert foreground.returncode == 0


JOB = """
import sys
import pyarrow as pa
from engine import Environment
env = Environment()
env.from_arrow(pa.table({"a": [1, 2, 3]})).write_csv(sys.argv[1])
print(env.execute("three rows").state, flush=True)
sys.exit(int(sys.argv[2]))
"""


def test_a_standalone_job_has_a_job_manager_that_ends_with_it(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    task_manager = installation.daemon("taskmanager")
    words = ["-D", "parallelism.default=1", str(tmp_path / "job.py"), str(tmp_path / "out"), "7"]
    try:
        done = installation.run("standalonejob", "start-foreground", *words)
    finally:
        task_manager.terminate()
        output = task_manager.communicate(timeout=WAIT_S)[0]
    assert done.returncode == 7, done.stdout + done.stderr + output
    assert "FINISHED" in done.stdout
    assert (tmp_path / "out" / "part-00000.csv").read_text() == "1\n2\n3\n"
    assert installation.slots() == -1


def test_a_standalone_job_that_is_stopped_is_cancelled_and_leaves_nothing(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    done = installation.run("standalonejob", "start", str(tmp_path / "job.py"), str(tmp_path / "out"), "0")
    (pid,) = started(done, "standalonejob")
    assert installation.slots() == 0
    until(lambda: len(psutil.Process(pid).children()) == 2)
    children = [(child.pid, process_identity(child.pid)) for child in psutil.Process(pid).children()]
    installation.run("standalonejob", "stop")
    assert not installation.pid_file("standalonejob").exists()
    until(lambda: all(process_identity(child) != identity for child, identity in children))
    assert not (tmp_path / "out").exists()
    assert list(installation.tmp.iterdir()) == []


def test_a_standalone_job_that_is_killed_takes_its_job_manager_along(installation, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    done = installation.run("standalonejob", "start", str(tmp_path / "job.py"), str(tmp_path / "out"), "0")
    (pid,) = started(done, "standalonejob")
    os.kill(pid, signal.SIGKILL)
    until(lambda: installation.slots() == -1, "the end of the JobManager")


SLEEPY_JOB = """
import sys
import pyarrow as pa
from engine import Environment
schema = pa.schema([("a", pa.int64())])
def sleep(row):
    import time
    time.sleep(600)
env = Environment()
env.from_arrow(pa.table({"a": [1, 2]})).rebalance().map(sleep, schema).write_csv(sys.argv[1])
env.execute("sleepy")
"""


def python_workers(task_manager):
    """Return the processes below a TaskManager that run functions: zygote and workers."""
    return [(child.pid, process_identity(child.pid)) for child in psutil.Process(task_manager).children(recursive=True)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_python_workers_end_with_their_task_manager_however_it_ends(installation, tmp_path, number):
    (tmp_path / "job.py").write_text(SLEEPY_JOB)
    done = installation.run("cluster", "start")
    (task_manager,) = started(done, "taskmanager")
    words = ("job", "submit", "-t", "cluster", "-p", "2", str(tmp_path / "job.py"), str(tmp_path / "out"))
    job = subprocess.Popen(
        [sys.executable, "-m", "engine.cli.main", *words],
        env=installation.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: len(python_workers(task_manager)) == 3, "a zygote and two workers")
        workers = python_workers(task_manager)
        os.kill(task_manager, number)
        until(lambda: all(process_identity(pid) != identity for pid, identity in workers), "the end of all workers")
        until(lambda: installation.slots() == 0)
    finally:
        job.terminate()
        job.wait(WAIT_S)
    installation.run("cluster", "stop")
    assert not (tmp_path / "out").exists()


def test_a_task_manager_with_another_secret_is_refused_and_says_so(installation, tmp_path):
    started(installation.run("jobmanager", "start"), "jobmanager")
    other = tmp_path / "other.secret"
    other.write_text("f" * 64)
    other.chmod(0o600)
    task_manager = installation.daemon("taskmanager", "-D", f"security.secret-file={other}")
    line = next(line for line in iter(task_manager.stdout.readline, "") if "not registered" in line)
    assert "has another cluster secret" in line
    assert installation.slots() == 0
    task_manager.terminate()
    task_manager.communicate(timeout=WAIT_S)
    other.chmod(0o644)
    refused = installation.run("taskmanager", "start", "-D", f"security.secret-file={other}")
    assert refused.returncode == 1
    assert f"chmod 600 {other}" in refused.stderr


def test_folders_may_be_named_from_where_the_command_runs(installation, tmp_path):
    installation.environment |= {
        "DREY_CONF_DIR": "conf",
        "DREY_LOG_DIR": "log",
        "DREY_PID_DIR": "pid",
        "PYTHONPATH": str(ROOT),
    }
    command = ("env", "-C", str(tmp_path), sys.executable, "-m", "engine.entrypoint.scripts")
    done = installation.run("jobmanager", "start", command=command)
    assert len(started(done, "jobmanager")) == 1
    assert installation.slots() == 0, "it reads the configuration that was named"
    assert installation.run("jobmanager", "stop", command=command).returncode == 0
    assert installation.pids("jobmanager") == []


def test_folders_that_are_not_there_or_cannot_be_made_are_named(installation, tmp_path):
    (tmp_path / "file").write_text("")
    installation.environment["DREY_LOG_DIR"] = str(tmp_path / "file" / "log")
    done = installation.run("jobmanager", "start")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: .*{tmp_path}/file/log'\n", done.stderr)
    installation.environment["DREY_CONF_DIR"] = str(tmp_path / "nowhere")
    done = installation.run("jobmanager", "start")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: there is no folder {tmp_path}/nowhere, which DREY_CONF_DIR names\n"
    assert not (tmp_path / "nowhere").exists()


def test_task_managers_of_one_machine_share_its_memory_unless_somebody_says_how(installation):
    (installation.conf / "workers").write_text("localhost\nlocalhost\n")
    (installation.conf / "config.yaml").write_text(f"rest.port: {installation.port}\n")
    started(installation.run("cluster", "start"), "jobmanager")
    share_mb = psutil.virtual_memory().total // 4 >> 20
    for number in range(2):
        assert f"taskmanager.memory.process.size: {share_mb}mb" in installation.log_text("taskmanager", number)
    installation.run("cluster", "stop")
    started(installation.run("cluster", "start", "-D", "taskmanager.memory.process.size=300mb"), "jobmanager")
    assert "taskmanager.memory.process.size: 300mb" in installation.log_text("taskmanager", 1)
