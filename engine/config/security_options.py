"""Options of users and their tokens. Declared as those of ``options``.

Held by: tests/rpc/test_user_tokens.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

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
