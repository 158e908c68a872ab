"""Options of the server of Flight SQL. Declared as those of ``options``, which has them all.

Held by: tests/flight_sql/test_service.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

TOKEN_FILE = _option(
    "flight-sql.token-file",
    "string",
    None,
    "File with the token that clients of flink-run serve need, as a password or a bearer token. Created at the first "
    "start. Default: flight-sql.token. Relative to the folder of config.yaml.",
)
SESSION_TIMEOUT = _option(
    "flight-sql.session.timeout",
    "duration",
    "12 h",
    "Time for which a client that has logged in with a password is let in.",
    minimum=1,
)
STATEMENT_TIMEOUT = _option(
    "flight-sql.statement.timeout",
    "duration",
    "1 h",
    "Time after which a prepared statement that is not used is forgotten.",
    minimum=1,
)
READER_TIMEOUT = _option(
    "flight-sql.reader.timeout",
    "duration",
    "10 min",
    "Time after which a statement is cancelled whose client does not take the rows that are there.",
    minimum=1,
)
MAX_RUNNING = _option(
    "flight-sql.max-running", "int", "8", "Number of statements of clients that run at once; others wait.", minimum=1
)
MAX_WAITING = _option(
    "flight-sql.max-waiting",
    "int",
    "100",
    "Number of statements of clients that wait; further ones are refused.",
    minimum=0,
)
METRICS_PORT = _option(
    "flight-sql.metrics.port",
    "ports",
    None,
    "Port, or range of ports, at which flink-run serve answers /metrics, /healthz and /readyz over HTTP, at the "
    "address of --host. Default: it does not.",
)
