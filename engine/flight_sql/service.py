"""FlightSqlService: a server of Flight SQL over an environment, from its configuration to its end.

    with FlightSqlService(environment, "127.0.0.1", 31337) as service:
        service.uri            grpc://127.0.0.1:31337, or grpc+tls://

Nothing is open: callers need the token of ``flight-sql.token-file``, which the first start makes. ``is_open`` leaves it
out on loopback alone. Beyond this machine there is no start without TLS (``security.ssl.*``); clients show no
certificate of their own, since tools have none. The end cancels what runs.

Held by: tests/flight_sql/test_service.py
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from engine.config.flight_sql_options import (
    MAX_RUNNING,
    MAX_WAITING,
    METRICS_PORT,
    READER_TIMEOUT,
    SESSION_TIMEOUT,
    STATEMENT_TIMEOUT,
    TOKEN_FILE,
)
from engine.config.loader import Configuration
from engine.config.options import SSL_ENABLED
from engine.errors import ConfigurationError
from engine.network_address import is_loopback
from engine.rpc.audit import AuditEntry
from engine.rpc.secret_file import load_or_create_secret, place_beside_configuration
from engine.rpc.tls import certificate_pem
from engine.rpc.user_tokens import UserTokens, users_file
from engine.statements.session import StatementSession

try:
    import google.protobuf.descriptor_pool  # noqa: F401 - what the messages need
    import pyarrow.flight  # noqa: F401
except ImportError as error:
    raise ConfigurationError(f"serve needs the extra: pip install 'drey-engine[serve]' ({error})") from None

from engine.flight_sql.access import Access
from engine.flight_sql.commands import Commands
from engine.flight_sql.metrics_server import MetricsServer
from engine.flight_sql.prepared import PreparedStatements
from engine.flight_sql.record import Record
from engine.flight_sql.running import RunningStatements
from engine.flight_sql.server import Certificate, SqlServer

if TYPE_CHECKING:
    from engine.api.environment import Environment
    from engine.choices import SqlDialect

#: seconds in which calls that were cancelled end
_GRACE_S: Final = 5.0
_DEFAULT_FILE: Final = "flight-sql.token"
_log = logging.getLogger(__name__)


class FlightSqlService:
    """A server that listens from its construction to ``close``."""

    def __init__(
        self,
        environment: Environment,
        host: str,
        port: int,
        *,
        dialect: SqlDialect | None = None,
        is_read_only: bool = False,
        is_open: bool = False,
        note: Callable[[AuditEntry], None] | None = None,
    ) -> None:
        """Args: note: takes the entries of the record."""
        configuration = environment.configuration
        certificate = certificate_of(configuration, host)
        #: file of the token, None where callers need none
        self.token_file = None if is_open else token_file(configuration)
        if is_open and not is_loopback(host):
            raise ConfigurationError(f"serve --no-token is for this machine alone, and {host} is beyond it")
        token = None if self.token_file is None else load_or_create_secret(self.token_file, "token of Flight SQL")
        users = users_file(configuration)
        known = UserTokens(users) if users is not None and not is_open else None
        access = Access(token, configuration.get(SESSION_TIMEOUT) / 1000, users=known)
        self.running = RunningStatements(
            configuration.get(MAX_RUNNING), configuration.get(MAX_WAITING), configuration.get(READER_TIMEOUT) / 1000
        )
        commands = Commands(StatementSession(environment, dialect), self.running, is_read_only=is_read_only)
        prepared = PreparedStatements(configuration.get(STATEMENT_TIMEOUT) / 1000)
        scheme = "grpc+tls" if certificate else "grpc"
        shown = f"[{host}]" if ":" in host else host
        self.record = Record(note)
        try:
            self._server = SqlServer(f"{scheme}://{shown}:{port}", commands, prepared, access, certificate, self.record)
        except Exception as error:  # gRPC says on standard error what the system said
            self.running.close()
            raise ConfigurationError(
                f"serve cannot listen at {shown}:{port}: is the port taken by another process, or the address none of "
                f"this machine? ({type(error).__name__}: {error})"
            ) from None
        self.uri = f"{scheme}://{shown}:{self._server.port}"
        ports = configuration.get(METRICS_PORT)
        #: server of metrics, if a port is set for it
        self.metrics: MetricsServer | None = None
        if ports:
            try:
                self.metrics = MetricsServer(configuration, host, ports, [self.record.metrics, self._numbers])
            except BaseException:
                self.close()
                raise
        _log.info("Flight SQL at %s", self.uri)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _numbers(self) -> dict[str, float]:
        admission = self.running.admission
        return {
            "Status.FlightSql.Running": float(admission.running),
            "Status.FlightSql.Waiting": float(admission.waiting),
        }

    def close(self) -> bool:
        """Cancel what runs, and stop listening; return whether all calls have ended.

        A client that takes nothing holds its call in the library that sends, which waits for it without a limit. The
        thread that waits ends with the process.
        """
        self.running.close()
        if self.metrics is not None:
            self.metrics.close()
        closing = threading.Thread(target=self._server.shutdown, name="drey-flight-sql-shutdown", daemon=True)
        closing.start()
        closing.join(_GRACE_S)
        return not closing.is_alive()


def token_file(configuration: Configuration) -> Path:
    """Return the path of the token: ``flight-sql.token-file``, relative to the folder of config.yaml."""
    path = place_beside_configuration(configuration.get(TOKEN_FILE) or _DEFAULT_FILE)
    if path is None:
        raise ConfigurationError("there is no conf folder, where the token of Flight SQL lies: set DREY_CONF_DIR")
    return path


def certificate_of(configuration: Configuration, host: str) -> Certificate | None:
    """Return the certificate that the server shows; None on loopback without TLS. Raises: ConfigurationError."""
    pem = certificate_pem(configuration)
    if pem is not None:
        return Certificate(*pem)
    if not is_loopback(host):
        raise ConfigurationError(
            f"serve --host {host}: beyond this machine tokens and rows need TLS: make certificates with "
            f"bin/make-certificates.sh, and set {SSL_ENABLED.key} with its files"
        )
    return None
