"""Options of what operators add: users, a webhook, a receiver of metrics, and what a leader does beside its jobs.

Held by: tests/rpc/test_user_tokens.py
Held by: tests/rpc/test_webhook.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

WEBHOOK_URL = _option(
    "jobmanager.webhook.url",
    "string",
    None,
    "URL to which a JobManager posts JSON at the end of each job: id, name, user, state and times, signed with "
    "jobmanager.webhook.key-file. Default: nothing is posted.",
)
WEBHOOK_KEY_FILE = _option(
    "jobmanager.webhook.key-file",
    "string",
    None,
    "File with the key of the signatures, which the receiver knows as well. Created at the first start. Default: "
    "webhook.key. Relative to the folder of config.yaml.",
)
GARBAGE_INTERVAL = _option(
    "high-availability.gc.interval",
    "duration",
    "1 h",
    "Time between two looks of the leader for stored files that no job needs any more, which it removes when they are "
    "an hour old. 0: it does not look.",
)
OPENTELEMETRY_ENDPOINT = _option(
    "opentelemetry.endpoint",
    "string",
    None,
    "URL of a receiver of OTLP over HTTP, such as http://collector:4318, to which each process sends its metrics, a "
    "leader the traces of jobs. Headers and certificates: OTEL_EXPORTER_OTLP_HEADERS and the other variables of the "
    "standard. Default: nothing is sent.",
)
OPENTELEMETRY_INTERVAL = _option(
    "opentelemetry.interval",
    "duration",
    "1 min",
    "Time between two exports of metrics to opentelemetry.endpoint.",
    minimum=1,
)
USERS_FILE = _option(
    "security.users-file",
    "string",
    None,
    "File with the names, roles and hashes of the tokens of users, which flink-run token writes and a JobManager reads "
    "again when it changes. Default: users.tokens. Relative to the folder of config.yaml.",
)
OWN_TOKEN_FILE = _option(
    "security.token-file",
    "string",
    None,
    "File with the token of the user that runs a client. With it a client needs no cluster secret. Relative to the "
    "folder of config.yaml.",
)
