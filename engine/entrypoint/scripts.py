"""The commands behind ``bin/*.sh``: ``python -m engine.entrypoint.scripts <what> <verb> [arguments]``.

    jobmanager|taskmanager|standalonejob start|start-foreground|stop|stop-all [-D key=value]...
    cluster start|stop [-D key=value]...
    zookeeper start|start-foreground N | stop | stop-all
    quorum start|stop

Exit codes: 0 done, 1 failed. A process that runs and is not ready within 30 s goes on: a machine may be busy, and a
TaskManager may be started before its JobManager. That is no failure of its own start; it is one of a cluster's start.

Loads neither the engine nor an event loop: what takes time is the daemons' start, and they start side by side.

Source: jobmanager.sh, taskmanager.sh, start-cluster.sh, stop-cluster.sh of Flink.
Held by: tests/integration/test_scripts.py
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.config.home import command as script_path
from engine.config.home import is_checkout
from engine.config.loader import Configuration, load_configuration
from engine.config.options import (
    HA_TYPE,
    PROCESS_SIZE,
    SUPERVISOR_ATTEMPTS,
    SUPERVISOR_DELAY,
    SUPERVISOR_DELAY_MAX,
    SUPERVISOR_ENABLED,
    TMP_DIRS,
)
from engine.entrypoint.daemon_control import (
    Launch,
    StartOutcome,
    StartState,
    begin_start,
    complain,
    daemon_command,
    enter,
    say,
    stop_daemons,
    working_directory,
)
from engine.entrypoint.log_files import rotate_logs
from engine.entrypoint.pid_file import PidFile
from engine.entrypoint.places import Places, find_places, listed_hosts, listed_masters, make_conf
from engine.entrypoint.zookeeper_config import read_quorum
from engine.errors import ConfigurationError
from engine.memory.control_group import machine_bytes
from engine.memory.heap import daemon_variables
from engine.network_address import plain_host
from engine.private_folder import make_closed, scratch_folder
from engine.process_folder import FolderPrefix, sweep
from engine.python_command import drop_current_folder

#: seconds after which a daemon that is not ready is left to itself
START_TIMEOUT_S = 30.0
#: smallest useful process size: a TaskManager with less does little but spill
_PROCESS_MB_MIN = 128
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
#: options of ssh: no prompts for passwords of many hosts, and an error when a host does not answer in time.
#: DREY_SSH_OPTS come first and override them, since ssh takes the first value of an option
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
#: exit code of ssh itself
_SSH_FAILED = 255


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    drop_current_folder()
    what, verb, *arguments = sys.argv[1:] if words is None else words
    try:
        return _run_in(find_places(), what, verb, arguments)
    except (ConfigurationError, OSError) as error:
        complain(f"error: {error}")
        return 1


def _run_in(places: Places, what: str, verb: str, arguments: Sequence[str]) -> int:
    # Daemons work in another folder than this one, and what they start reads the same variables.
    for name, path in (("DREY_CONF_DIR", places.conf), ("DREY_LOG_DIR", places.log), ("DREY_PID_DIR", places.pid)):
        if os.environ.get(name):
            os.environ[name] = str(path)
    if os.environ.get("DREY_HOME"):
        os.environ["DREY_HOME"] = str(Path(os.environ["DREY_HOME"]).absolute())
    os.environ.update(daemon_variables())
    # Stopping needs pid files only: whatever became of the configuration, what runs can be ended.
    if verb not in ("stop", "stop-all") and not make_conf(places):
        complain(f"error: there is no folder {places.conf}, which DREY_CONF_DIR names")
        return 1
    return _run(places, what, verb, arguments)


def _run(places: Places, what: str, verb: str, arguments: Sequence[str]) -> int:
    if what == "cluster":
        return start_cluster(places, arguments) if verb == "start" else stop_cluster(places)
    if what == "quorum":
        return start_quorum(places) if verb == "start" else stop_quorum(places)
    if verb in ("stop", "stop-all"):
        return stop_daemons(places, what, all_of_them=verb == "stop-all")
    if verb == "start-foreground":
        return start_foreground(places, what, arguments)
    return start(places, what, arguments)


def start(places: Places, daemon: str, arguments: Sequence[str]) -> int:
    """Start a daemon and wait until it is ready."""
    if daemon == "taskmanager":
        _tell_of_memory(arguments, 1)
    return _report([begin_start(places, daemon, arguments, _supervision(daemon, arguments))], is_cluster=False)


def start_foreground(places: Places, daemon: str, arguments: Sequence[str]) -> int:
    """Become the daemon: this process, on this terminal, logging to it and to the usual file."""
    make_closed(places.log)
    log_file = places.log_file(daemon, enter(places, daemon, os.getpid()))
    rotate_logs(log_file)
    os.chdir(working_directory(daemon))
    life = ["--log-file", str(log_file), "--foreground"]
    command = daemon_command(daemon, life, arguments, _supervision(daemon, arguments))
    os.execv(command[0], command)  # noqa: S606 - this is what foreground means


def start_cluster(places: Places, arguments: Sequence[str]) -> int:
    """Start a JobManager here and a TaskManager for each line of ``conf/workers``, all at the same time.

    With ``high-availability.type`` ZOOKEEPER each line of ``conf/masters`` is a JobManager.
    """
    for daemon in ("jobmanager", "taskmanager"):
        PidFile(places.pid_file(daemon), daemon).read()  # raises before anything runs that could not be entered
    launches: list[Launch] = []
    remote: list[tuple[str, subprocess.Popen[str]]] = []
    for host, address in _masters(places, arguments):
        if host in _LOCAL_NAMES:
            words = [*arguments, *address]
            launches.append(begin_start(places, "jobmanager", words, _supervision("jobmanager", words)))
        else:
            remote.append((host, _ssh(host, "jobmanager.sh", "start", [*arguments, *address])))
    hosts = [plain_host(line) for line in listed_hosts(places, "workers")]
    here = sum(host in _LOCAL_NAMES for host in hosts)
    local = [*arguments, *_share_of_memory(arguments, here)]
    _tell_of_memory(local, here)
    for host in hosts:
        if host in _LOCAL_NAMES:
            launches.append(begin_start(places, "taskmanager", local))
        else:
            remote.append((host, _ssh(host, "taskmanager.sh", "start", arguments)))
    code = _report(launches, is_cluster=True)
    for host, process in remote:
        code = max(code, _relay(host, process))
    return code


def _share_of_memory(arguments: Sequence[str], count: int) -> list[str]:
    """Divide half of the machine's memory among several TaskManagers here, unless their size is set."""
    is_said = any(word.removeprefix("-D").startswith(f"{PROCESS_SIZE.key}=") for word in arguments)
    if count < 2 or is_said or load_configuration().get(PROCESS_SIZE) is not None:
        return []
    share_mb = max(_PROCESS_MB_MIN, machine_bytes() // 2 // count >> 20)
    return ["-D", f"{PROCESS_SIZE.key}={share_mb}mb"]


def _tell_of_memory(arguments: Sequence[str], count: int) -> None:
    """Warn where TaskManagers may take more memory than this machine has."""
    from engine.memory.process_memory import too_large_text

    with contextlib.suppress(ConfigurationError):  # the daemon reports what is wrong, in its log
        text = too_large_text(_configured(arguments), machine_bytes(), max(1, count))
        if text is not None:
            complain(f"[WARN] {text}")


def stop_cluster(places: Places) -> int:
    """Stop the TaskManagers of all hosts, then the JobManager."""
    hosts = [plain_host(line) for line in listed_hosts(places, "workers")]
    remote = [
        (host, _ssh(host, "taskmanager.sh", "stop-all", ()))
        for host in dict.fromkeys(hosts)
        if host not in _LOCAL_NAMES
    ]
    code = stop_daemons(places, "taskmanager", all_of_them=True)
    code = max([code, *(_relay(host, process) for host, process in remote)])
    try:
        masters = dict.fromkeys(host for host, _ in _masters(places, ()))
    except ConfigurationError as error:
        complain(f"[WARN] the configuration cannot be read, so only what runs on this host is stopped now: {error}")
        masters = dict.fromkeys(["localhost"])
    remote = [(host, _ssh(host, "jobmanager.sh", "stop-all", ())) for host in masters if host not in _LOCAL_NAMES]
    code = max([code, *(_relay(host, process) for host, process in remote)])
    code = max(code, stop_daemons(places, "jobmanager", all_of_them=True))
    _sweep_folders_of_the_dead()
    return code


def _sweep_folders_of_the_dead() -> None:
    """Remove what processes that were killed have left; the next start would do so as well."""
    configured = ""
    with contextlib.suppress(ConfigurationError):  # said where the masters were read; the next start sweeps as well
        configured = load_configuration().get(TMP_DIRS) or ""
    directories = {scratch_folder(), *map(Path, filter(None, map(str.strip, configured.split(","))))}
    for directory in sorted(directories):
        for prefix in FolderPrefix:
            sweep(directory, prefix)


def _masters(places: Places, arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the hosts of JobManagers, each with the arguments that give its address."""
    if _configured(arguments).get(HA_TYPE) != "ZOOKEEPER":
        return [("localhost", [])]
    listed = listed_masters(places)
    return [(host, [host] if port is None else [host, str(port)]) for host, port in listed]


def _configured(arguments: Sequence[str]) -> Configuration:
    """Return the configuration of a daemon that is started with these arguments."""
    configuration = load_configuration()
    for word in arguments:
        key, separator, value = word.removeprefix("-D").partition("=")
        if separator:
            configuration.set(key, value, "command line")
    return configuration


def _supervision(daemon: str, arguments: Sequence[str]) -> list[str] | None:
    """Return the arguments of a daemon's supervisor; None when it has none."""
    if daemon != "jobmanager":
        return None
    try:
        configuration = _configured(arguments)
    except ConfigurationError:
        return None  # the daemon reports what is wrong, in its log
    is_chosen = configuration.get(SUPERVISOR_ENABLED)
    if not (configuration.get(HA_TYPE) == "ZOOKEEPER" if is_chosen is None else is_chosen):
        return None
    delays = [str(configuration.get(option) / 1000) for option in (SUPERVISOR_DELAY, SUPERVISOR_DELAY_MAX)]
    attempts = configuration.get(SUPERVISOR_ATTEMPTS)
    return ["--delay", *delays, *(["--attempts", str(attempts)] if attempts is not None else [])]


def start_quorum(places: Places) -> int:
    """Start those servers of ``conf/zoo.cfg`` that do not run, all at the same time; wait until they are a quorum."""
    quorum = read_quorum(places.conf / "zoo.cfg")
    launches: list[Launch] = []
    remote: list[tuple[str, subprocess.Popen[str]]] = []
    for number in quorum.servers:
        host = quorum.host(number)
        if host in _LOCAL_NAMES and _runs(places, str(quorum.folder(number))):
            say(f"ZooKeeper server {number} is already running on {places.host}.")
        elif host in _LOCAL_NAMES:
            launches.append(begin_start(places, "zookeeper", [str(number), "--with-quorum"]))
        else:
            remote.append((host, _ssh(host, "zookeeper.sh", "start", [str(number)])))
    code = _report(launches, is_cluster=True)
    return max([code, *(_relay(host, process) for host, process in remote)])


def _runs(places: Places, folder: str) -> bool:
    """Return whether a server of ZooKeeper that keeps its data in a folder runs here."""
    with PidFile(places.pid_file("zookeeper"), "zookeeper").locked() as processes:
        pids = [process.pid for process in processes if process.is_alive]
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").endswith(f"{folder}/zoo.cfg"):
                return True
    return False


def stop_quorum(places: Places) -> int:
    """Stop the servers of ``conf/zoo.cfg``."""
    try:
        quorum = read_quorum(places.conf / "zoo.cfg")
        hosts = dict.fromkeys(quorum.host(number) for number in quorum.servers)
    except (ConfigurationError, OSError) as error:
        complain(f"[WARN] only servers on this host are stopped: {error}")
        hosts = {}
    remote = [(host, _ssh(host, "zookeeper.sh", "stop-all", ())) for host in hosts if host not in _LOCAL_NAMES]
    code = stop_daemons(places, "zookeeper", all_of_them=True)
    return max([code, *(_relay(host, process) for host, process in remote)])


def _report(launches: list[Launch], *, is_cluster: bool) -> int:
    """Wait for daemons and say what became of them; TaskManagers end when their JobManager has failed."""
    code, has_job_manager = 0, True
    running: list[Launch] = []
    for launch in launches:
        if has_job_manager:
            outcome = launch.wait(START_TIMEOUT_S)
            code = max(code, _say_outcome(launch, outcome, is_cluster=is_cluster))
            if launch.daemon == "jobmanager":
                has_job_manager = outcome.state is not StartState.FAILED
                running.extend([launch] if outcome.state is StartState.READY else ())
        else:
            launch.end()
        launch.close()
    if code and has_job_manager and is_cluster and running:
        names = ", ".join(f"jobmanager {launch.pid}" for launch in running)
        complain(
            f"Not all of the cluster runs, but {names} does, and goes on: taskmanager.sh start adds TaskManagers, "
            "stop-cluster.sh stops all of it"
        )
    return code


def _say_outcome(launch: Launch, outcome: StartOutcome, *, is_cluster: bool) -> int:
    name = f"{launch.daemon} {launch.pid}"
    if outcome.state is StartState.READY:
        say(f"Started {name} at {outcome.text}")
        return 0
    if outcome.state is StartState.FAILED:
        complain(f"{name} did not start: {outcome.text}")
        return 1
    if launch.daemon == "taskmanager":
        waits = f"has found no JobManager within {START_TIMEOUT_S:g} s and goes on looking"
    else:
        waits = f"is not ready after {START_TIMEOUT_S:g} s and goes on starting"
    log = f"log: {launch.log_file}" if launch.log_file.exists() else "it has written no log yet"
    complain(f"{name} runs, but {waits}: {outcome.text}; {log}")
    return 1 if is_cluster else 0


def _ssh(host: str, script: str, verb: str, arguments: Sequence[str]) -> subprocess.Popen[str]:
    command = shlex.join([str(script_path(script)), verb, *arguments])
    settings = " ".join(
        f"{name}={shlex.quote(os.environ[name])}"
        for name in ("DREY_CONF_DIR", "DREY_LOG_DIR", "DREY_PID_DIR", *(() if is_checkout() else ("DREY_HOME",)))
        if os.environ.get(name)
    )
    options = shlex.split(f"{os.environ.get('DREY_SSH_OPTS', '')} {_SSH_OPTIONS}")
    return subprocess.Popen(
        ["ssh", "-n", *options, host, f"{settings} {command}".strip()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _relay(host: str, process: subprocess.Popen[str]) -> int:
    output, _ = process.communicate()
    for line in output.splitlines():
        say(f"{host}: {line}")
    if process.returncode == _SSH_FAILED:
        complain(
            f"{host}: cannot be reached by ssh, nothing was done there. Is the name right, and does 'ssh {host} true'"
            " work without a question? DREY_SSH_OPTS has more options for ssh"
        )
    elif process.returncode:
        complain(f"{host}: the command there ended with exit code {process.returncode}")
    return 1 if process.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
