"""``flink-run token add | list | remove``: the users of a cluster, in the file of their tokens.

add       a user with a role, or another token for one that there is; prints the token, which is kept nowhere
list      names and roles
remove    its token is refused from the next request on

The commands change the file of this machine. Every JobManager of a cluster needs the same one.

Held by: tests/rpc/test_user_tokens.py
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from engine.config.loader import load_configuration
from engine.errors import ConfigurationError
from engine.rpc.principal import Role
from engine.rpc.user_tokens import add_user, list_users, remove_user, users_file


def add_token(options: argparse.Namespace) -> int:
    """Add a user and print its token."""
    path = _file()
    token = add_user(path, options.name, Role[options.role.upper()])
    if options.json:
        print(json.dumps({"name": options.name, "role": options.role, "token": token}))
        return 0
    print(f"{options.name} may {options.role}. The token is shown once: {path} has its hash alone.", file=sys.stderr)
    print(token)
    return 0


def list_tokens(options: argparse.Namespace) -> int:
    """Print all users."""
    users = list_users(_file())
    if options.json:
        print(json.dumps({"users": [{"name": user.name, "role": user.role.text} for user in users]}))
        return 0
    for user in users:
        print(f"{user.name:24}{user.role.text}")
    if not users:
        print("There are no users: flink-run token add NAME --role read|submit|admin", file=sys.stderr)
    return 0


def remove_token(options: argparse.Namespace) -> int:
    """Remove a user."""
    if not remove_user(_file(), options.name):
        raise ConfigurationError(f"there is no user {options.name!r}: flink-run token list shows them")
    print(json.dumps({"name": options.name}) if options.json else f"{options.name} is removed.")
    return 0


def _file() -> Path:
    path = users_file(load_configuration())
    if path is None:
        raise ConfigurationError("there is no conf folder, where the users' file lies: set DREY_CONF_DIR")
    return path
