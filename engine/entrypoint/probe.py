"""``bin/probe.sh DAEMON [alive|ready]``: what a process of this machine says of its health, for containers and scripts.

    probe.sh taskmanager ready     ok, exit code 0          or: not ready: not-registered, exit code 1
    probe.sh any alive             the same of the one that runs in a container, whichever it is

For images without curl, and for clusters with mutual TLS, where an orchestrator's own requests show no certificate.
It asks where the configuration says that the daemon listens: so the port must not be 0. Of a range each is tried.

Held by: tests/entrypoint/test_health_of_daemons.py
"""

from __future__ import annotations

import argparse
import http.client
import sys
from collections.abc import Sequence

from engine.config.config_option import ConfigOption
from engine.config.loader import Configuration, load_configuration
from engine.config.network_options import (
    HISTORY_ADDRESS,
    HISTORY_BIND_HOST,
    HISTORY_PORT,
    JOB_MANAGER_BIND_HOST,
    REST_PORT,
    TASK_MANAGER_BIND_HOST,
    TASK_MANAGER_RPC_PORT,
)
from engine.errors import ConfigurationError
from engine.network_address import is_wildcard
from engine.rpc.health import HEALTH_PATH, READY_PATH
from engine.rpc.tls import tls_contexts

#: seconds for an answer
_WITHIN_S = 5.0
_ANY = "any"
_PATHS = {"alive": HEALTH_PATH, "ready": READY_PATH}
#: options of where a daemon listens: hosts, of which the first that is set counts, and the port
_PLACES: dict[str, tuple[tuple[ConfigOption, ...], ConfigOption]] = {
    "jobmanager": ((JOB_MANAGER_BIND_HOST,), REST_PORT),
    "taskmanager": ((TASK_MANAGER_BIND_HOST,), TASK_MANAGER_RPC_PORT),
    "historyserver": ((HISTORY_BIND_HOST, HISTORY_ADDRESS), HISTORY_PORT),
}


def main(words: Sequence[str] | None = None) -> int:
    """Ask once, print the answer and return the exit code: 0 for ok."""
    parser = argparse.ArgumentParser(prog="probe.sh", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("daemon", choices=[*_PLACES, _ANY])
    parser.add_argument("question", choices=_PATHS, nargs="?", default="ready")
    parser.add_argument("-D", dest="options", action="append", default=[], metavar="KEY=VALUE", help="set an option")
    arguments = parser.parse_args(words)
    try:
        configuration = load_configuration()
        for text in arguments.options:
            key, _, value = text.partition("=")
            configuration.set(key, value, "command line")
        daemons = list(_PLACES) if arguments.daemon == _ANY else [arguments.daemon]
        answers = [_ask(configuration, daemon, _PATHS[arguments.question]) for daemon in daemons]
        is_ok, said = next((each for each in answers if each[0]), answers[0])
    except ConfigurationError as error:
        is_ok, said = False, f"error: {error}"
    sys.stdout.write(f"{said}\n")
    return 0 if is_ok else 1


def _ask(configuration: Configuration, daemon: str, path: str) -> tuple[bool, str]:
    """Return whether the answer is ok, and its text; that of the first port where a server answers."""
    hosts, port_option = _PLACES[daemon]
    host = next(value for option in hosts if (value := configuration.get(option)) is not None)
    ports: Sequence[int] = configuration.get(port_option)
    if not any(ports):
        return False, f"error: {port_option.key} is 0, any free port: set it to one that can be asked"
    said = "nothing answers"
    for port in ports:
        try:
            return _answer(configuration, _reached(host), port, path)
        except (OSError, http.client.HTTPException) as error:
            said = f"nothing answers: {getattr(error, 'strerror', None) or error}"
    return False, said


def _reached(host: str) -> str:
    """Return the address under which a process of this machine reaches one that listens at a host."""
    if not is_wildcard(host):
        return "127.0.0.1" if host == "localhost" else host
    return "::1" if ":" in host else "127.0.0.1"


def _answer(configuration: Configuration, host: str, port: int, path: str) -> tuple[bool, str]:
    tls = tls_contexts(configuration)
    if tls is None:
        connection = http.client.HTTPConnection(host, port, timeout=_WITHIN_S)
    else:
        tls.client.check_hostname = False  # its certificate names the host that others are told
        connection = http.client.HTTPSConnection(host, port, timeout=_WITHIN_S, context=tls.client)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status == http.HTTPStatus.OK, response.read().decode(errors="replace").strip()
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
