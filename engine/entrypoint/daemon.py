"""The life of a daemon's process: arguments, configuration, logging, one event loop, signals, exit code.

    run_daemon("taskmanager", create, argv)
        create(DaemonContext) ─► Daemon ─ start() ─► ready ... SIGTERM, SIGINT or a failure ... ─ stop() ─► exit

    0    ended because it was asked to         1    did not start
    2    something in it failed                143  had to be ended by force: a second signal, or stop() takes too long
    3    did not start: it is configured wrongly

Source: Flink's ClusterEntrypoint and TaskManagerRunner, with their exit codes.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from engine.config.command_line import CommandLine, given_once, install_command_line
from engine.config.debug_options import FAULT_POINT
from engine.config.loader import Configuration, load_configuration
from engine.entrypoint.logging_setup import log_configuration, set_up_logging
from engine.entrypoint.parent_death import end_with_parent
from engine.entrypoint.places import Places, find_places
from engine.entrypoint.readiness import Readiness, WarningTeller
from engine.errors import ConfigurationError, EngineError
from engine.fault_points import arm
from engine.memory.heap import settle_daemon
from engine.rpc.secret_file import SecretFileError
from engine.storage.store_client import use_store_settings

_log = logging.getLogger(__name__)

EXIT_NOT_STARTED = 1
EXIT_FAILED = 2
EXIT_MISCONFIGURED = 3
EXIT_FORCED = 143
#: seconds for an orderly end
STOP_TIMEOUT_S = 10.0


class Daemon(Protocol):
    """A component that runs as a process."""

    async def start(self) -> None:
        """Begin to serve; raises what hinders it. Says itself when it is ready."""
        ...

    async def stop(self, reason: str) -> None:
        """Release everything; ``reason``: shown to clients."""
        ...


@dataclass(frozen=True)
class DaemonContext:
    """The context from which a daemon is made."""

    configuration: Configuration
    places: Places
    readiness: Readiness
    #: latest log file of the process
    log_file: Path | None
    #: callback for errors that a component cannot survive
    on_fatal: Callable[[BaseException], None]
    #: pipe to the supervisor, which ends the process's ZooKeeper session in its place
    session_pipe: int | None = None


def build_parser(daemon: str) -> argparse.ArgumentParser:
    """Return the parser of options that all daemons have."""
    parser = argparse.ArgumentParser(prog=daemon)
    parser.add_argument("-D", dest="options", action="append", default=[], metavar="KEY=VALUE", help="set an option")
    parser.add_argument("--log-file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--foreground", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--session-fd", type=int, help=argparse.SUPPRESS)
    return parser


def run_daemon(
    name: str, create: Callable[[DaemonContext], Daemon], arguments: argparse.Namespace, settings: Sequence[str] = ()
) -> int:
    """Run a daemon to its end and return the exit code; ``settings``: further options as ``key=value``."""
    readiness = Readiness(arguments.ready_fd)
    if arguments.parent is not None:
        end_with_parent(arguments.parent)
    try:
        options = given_once(_key_and_value(text) for text in (*arguments.options, *settings))
        install_command_line(CommandLine(options))
        configuration = load_configuration()
        use_store_settings(configuration.storage_texts())
        arm(configuration.get(FAULT_POINT))
        set_up_logging(configuration, arguments.log_file, to_terminal=arguments.foreground)
    except (EngineError, OSError) as error:
        logging.basicConfig()
        _log.error("%s", error)
        readiness.failed(str(error))
        return EXIT_MISCONFIGURED
    logging.getLogger(__package__).addHandler(WarningTeller(readiness))
    _log.info("starting %s, process %d", name, os.getpid())
    log_configuration(configuration)
    life = _Life(name, readiness, arguments.parent)
    context = DaemonContext(
        configuration, find_places(), readiness, arguments.log_file, life.fail, _own(arguments.session_fd)
    )
    settle_daemon()
    code = asyncio.run(life.run(lambda: create(context)))
    _log.info("%s ends with exit code %d", name, code)
    logging.shutdown()
    return code


def _own(descriptor: int | None) -> int | None:
    """Keep a pipe from the children of this process, and from making it wait."""
    if descriptor is not None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
    return descriptor


def _key_and_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"-D {text}: write -D key=value")
    return key, value


class _Life:
    """The life of a daemon, from start to end, whatever happens in between."""

    def __init__(self, name: str, readiness: Readiness, supervisor: int | None = None) -> None:
        self._name = name
        self._supervisor = supervisor
        self._readiness = readiness
        self._end: asyncio.Event
        self._failure: BaseException | None = None
        self._is_ending = False

    def fail(self, error: BaseException) -> None:
        """Record an error that a component cannot survive; the process ends."""
        if self._failure is None:
            self._failure = error
            _log.error("%s cannot go on: %s", self._name, error, exc_info=error)
            self._end.set()

    async def run(self, create: Callable[[], Daemon]) -> int:
        loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        loop.set_exception_handler(self._loop_failed)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_end, signal.Signals(number).name)
        daemon: Daemon | None = None
        try:
            daemon = create()
            await self._until_end(daemon.start())
        except Exception as error:
            if isinstance(error, EngineError | OSError):
                _log.error("%s does not start: %s", self._name, error)
                _log.debug("where", exc_info=error)
            else:
                _log.exception("%s does not start", self._name)
            self._readiness.failed(str(error) or repr(error))
            await self._stop(daemon)
            return EXIT_MISCONFIGURED if isinstance(error, SecretFileError) else EXIT_NOT_STARTED
        await self._end.wait()
        if self._failure is not None:
            self._readiness.failed(str(self._failure) or repr(self._failure))
        stopped = await self._stop(daemon)
        if not stopped:
            return EXIT_FORCED
        return EXIT_FAILED if self._failure is not None else 0

    async def _until_end(self, start: Awaitable[None]) -> None:
        """Wait for the start, or for the signal that ends it."""
        starting = asyncio.ensure_future(start)
        ending = asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.wait({starting})
            if not starting.cancelled():
                starting.result()
        finally:
            ending.cancel()

    async def _stop(self, daemon: Daemon | None) -> bool:
        """Stop politely; return whether that worked in time. What does not end then is ended with the process."""
        if daemon is None:
            return True
        self._is_ending = True
        try:
            await asyncio.wait_for(daemon.stop(self._reason()), STOP_TIMEOUT_S)
        except TimeoutError:
            _log.error("%s has not stopped within %g s and is ended by force", self._name, STOP_TIMEOUT_S)
            _end_by_force()
            return False
        except Exception as error:
            _log.exception("%s did not stop cleanly", self._name)
            self._failure = self._failure or error
        return True

    def _reason(self) -> str:
        return "it was stopped" if self._failure is None else f"it failed: {self._failure!r}"

    def _asked_to_end(self, signal_name: str) -> None:
        if self._is_ending or self._end.is_set():
            _log.warning("%s again: %s is ended by force", signal_name, self._name)
            _end_by_force()
        if self._supervisor is not None and os.getppid() != self._supervisor:
            _log.error(
                "%s stops with its supervisor, process %d, which has ended; nothing in this installation starts either "
                "again: have systemd or the like supervise it",
                self._name,
                self._supervisor,
            )
        else:
            _log.info("%s: %s stops", signal_name, self._name)
        self._end.set()

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        _log.error("%s", context.get("message"), exc_info=error)
        if error is not None and not isinstance(error, ConnectionError):
            self.fail(error)


def _end_by_force() -> None:
    logging.shutdown()
    os._exit(EXIT_FORCED)
