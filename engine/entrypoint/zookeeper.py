"""``python -m engine.entrypoint.zookeeper NUMBER``: a server of ``conf/zoo.cfg``, from the jars that come with PySpark.

    this process ── checks, writes the server's zoo.cfg ── becomes Java (the pid stays)
         └─ a child asks ``srvr`` until the server serves, says ``ready``, and ends

Five jars and a lean virtual machine: about 60 MiB a server. The classes come from an archive that is made once, beside
the packages, by a server that is thrown away; with it a server is up in less than a second.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from engine.config.command_line import CommandLine, install_command_line
from engine.config.loader import load_configuration
from engine.config.options import HA_SESSION_TIMEOUT
from engine.entrypoint.pid_file import ZOOKEEPER_MAIN
from engine.entrypoint.places import find_places
from engine.entrypoint.readiness import Readiness
from engine.entrypoint.zookeeper_config import Quorum, read_quorum
from engine.errors import ConfigurationError, EngineError, ResourceError
from engine.log_output import LogFile
from engine.network_address import address_text, bind_socket

_JARS = ("zookeeper-[0-9]", "zookeeper-jute-", "slf4j-api-", "metrics-core-", "snappy-java-")
_JVM = (
    *("-Xms8m", "-Xmx64m", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:ReservedCodeCacheSize=16m", "-XX:CICompilerCount=1", "-XX:+ExitOnOutOfMemoryError"),
)
_POLL_S = 0.03
#: addresses of the server that records its classes, of which a machine has one
_LOOPBACKS = ("127.0.0.1", "::1")
_ANSWER_S = 1.0
#: time limit of the server that runs once to record its classes, seconds
_RECORDING_S = 30.0


def main(words: Sequence[str] | None = None) -> int:
    """Become a server; returns only when it cannot start."""
    parser = argparse.ArgumentParser(prog="zookeeper")
    parser.add_argument("number", type=int)
    parser.add_argument("--with-quorum", action="store_true", help="ready when the quorum serves")
    parser.add_argument("-D", dest="options", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--log-file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--foreground", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    readiness = Readiness(arguments.ready_fd)
    try:
        install_command_line(CommandLine(dict(text.split("=", 1) for text in arguments.options if "=" in text)))
        quorum = read_quorum(find_places().conf / "zoo.cfg")
        quorum.check(load_configuration().get(HA_SESSION_TIMEOUT))
        command = _command(quorum, arguments.number)
    except (EngineError, OSError) as error:
        readiness.failed(str(error))
        sys.stderr.write(f"error: {error}\n")
        return 1
    if arguments.log_file is not None:
        with LogFile(arguments.log_file) as log:
            log.write(f"{' '.join(command)}\n{Path(command[-1]).read_text()}".encode())
    _tell_when_ready(readiness, quorum, arguments.number, arguments.with_quorum or len(quorum.servers) == 1)
    return _become(command)


def _become(command: list[str]) -> int:
    os.execv(command[0], command)  # noqa: S606 - this process is the server's


def _command(quorum: Quorum, number: int) -> list[str]:
    if number not in quorum.servers:
        raise ConfigurationError(f"{quorum.path} has no server.{number}, only {', '.join(map(str, quorum.servers))}")
    address, port = quorum.client_address(number)
    with contextlib.suppress(OSError), socket.create_connection((address, port), _ANSWER_S):
        raise ResourceError(f"port {port} at {address} is taken: another ZooKeeper server?")
    java = _find_java()
    class_path = _class_path()
    return _java_command(java, class_path, [f"-XX:SharedArchiveFile={_archive(java, class_path)}"], quorum, number)


def _java_command(java: str, class_path: str, flags: list[str], quorum: Quorum, number: int) -> list[str]:
    return [java, *_JVM, *flags, "-Xshare:auto", "-cp", class_path, ZOOKEEPER_MAIN, str(quorum.prepare(number))]


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise ConfigurationError("ZooKeeper needs Java 17 or 21: set JAVA_HOME, or start it with bin/zookeeper.sh")
    return java


def _class_path() -> str:
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise ConfigurationError("ZooKeeper comes with PySpark's jars: pip install 'drey-engine[spark]'")
    folder = Path(package.origin).with_name("jars")
    jars = [sorted(folder.glob(f"{name}*.jar")) for name in _JARS]
    missing = [name for name, found in zip(_JARS, jars, strict=True) if not found]
    if missing:
        raise ConfigurationError(f"{folder} lacks {', '.join(missing)}: ZooKeeper needs PySpark 4")
    return ":".join(str(found[-1]) for found in jars)


def _archive(java: str, class_path: str) -> Path:
    """Return the archive of classes for this Java and these jars; makes it when there is none."""
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    name = hashlib.sha256(f"{version}{class_path}{_JVM}".encode()).hexdigest()[:16]
    archive = Path(sys.prefix) / f"zookeeper-{name}.jsa"
    if archive.exists() or not os.access(sys.prefix, os.W_OK):
        return archive
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(prefix="drey-zookeeper-") as folder:
                _record_classes(java, class_path, archive, Path(folder))
    return archive


def _record_classes(java: str, class_path: str, archive: Path, folder: Path) -> None:
    """Run a server that is a quorum alone, and have it write the classes that it has used when it ends."""
    host, ports = _free_ports(3)
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder}\nclientPort={ports[0]}\nclientPortAddress={host}\nstandaloneEnabled=false\n"
        f"server.1={address_text(host, ports[1])}:{ports[2]}\n"
    )
    quorum = read_quorum(folder / "zoo.cfg")
    made = folder / "made.jsa"
    command = _java_command(java, class_path, [f"-XX:ArchiveClassesAtExit={made}"], quorum, 1)
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _RECORDING_S
        while server.poll() is None and time.monotonic() < deadline and not _serves(quorum, 1, with_quorum=True):
            time.sleep(_POLL_S)
        server.terminate()
        server.wait(_RECORDING_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if made.exists():
        temporary = archive.with_suffix(f".{os.getpid()}")
        shutil.move(made, temporary)
        temporary.replace(archive)


def _free_ports(count: int) -> tuple[str, list[int]]:
    """Return an address that only this machine reaches, and free ports there; some machines have none of IPv4."""
    for host in _LOOPBACKS:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            bound = [stack.enter_context(bind_socket(host, 0)) for _ in range(count)]
            return host, [each.getsockname()[1] for each in bound]
    raise ResourceError(f"this machine has none of the addresses {', '.join(_LOOPBACKS)}")


def _serves(quorum: Quorum, number: int, *, with_quorum: bool) -> bool:
    """Return whether the server answers ``srvr``, and with a mode, which it has in a quorum only."""
    try:
        with socket.create_connection(quorum.client_address(number), _ANSWER_S) as connection:
            connection.settimeout(_ANSWER_S)
            connection.sendall(b"srvr")
            with connection.makefile("rb") as answers:
                answer = answers.read()
    except OSError:
        return False
    return b"Mode:" in answer or (not with_quorum and bool(answer))


def _tell_when_ready(readiness: Readiness, quorum: Quorum, number: int, with_quorum: bool) -> None:
    """Leave a child behind that says when this process, which is Java by then, serves."""
    server = os.pidfd_open(os.getpid())
    os.set_inheritable(server, False)
    child = os.fork()
    if child > 0:
        # The grandchild must not become a zombie: Java would not reap it.
        os.waitpid(child, 0)
        os.close(server)
        readiness.close()
        return
    if os.fork() == 0:
        while not select.select([server], [], [], _POLL_S)[0]:
            if _serves(quorum, number, with_quorum=with_quorum):
                readiness.ready(quorum.place(number))
                break
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
