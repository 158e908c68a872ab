"""A cluster whose users have tokens, by the commands that people use: no secret is in their hands."""

import json
import sys

import pytest

from tests.entrypoint.conftest import until

pytestmark = pytest.mark.processes

JOB = """
from drey import Environment
env = Environment()
print(sorted(row.n for row in env.from_rows([{"n": 1}, {"n": 2}]).collect()))
"""


def test_users_do_with_tokens_what_their_roles_allow_and_need_no_secret(installation, tmp_path):
    def flink_run(*words):
        return installation.run(*words, command=(sys.executable, "-m", "engine.cli.main"))

    tokens = {}
    for name, role in (("ada", "submit"), ("bob", "read")):
        done = flink_run("token", "add", name, "--role", role, "--json")
        assert done.returncode == 0, done.stderr
        tokens[name] = json.loads(done.stdout)["token"]
    assert installation.run("cluster", "start").returncode == 0
    until(lambda: installation.slots() == 2, "slots")
    # What follows is another person's: there is a token, and no secret.
    (installation.conf / "cluster.secret").rename(tmp_path / "away.secret")
    for name, token in tokens.items():
        (installation.conf / f"{name}.token").write_text(token)
        (installation.conf / f"{name}.token").chmod(0o600)
    job = tmp_path / "job.py"
    job.write_text(JOB)
    try:

        def as_user(name, *words):
            installation.environment["DREY_SECURITY_TOKEN_FILE"] = f"{name}.token"
            return flink_run(*words)

        done = as_user("ada", "job", "submit", "-t", "cluster", str(job))
        assert done.returncode == 0 and "[1, 2]" in done.stdout, done.stdout + done.stderr
        listed = as_user("bob", "job", "list", "--user", "ada", "--state", "FINISHED")
        assert "of ada (FINISHED)" in listed.stdout
        refused = as_user("bob", "job", "submit", "-t", "cluster", str(job))
        assert refused.returncode != 0 and "bob has the role read" in refused.stderr, refused.stderr
        stopped = as_user("ada", "taskmanager", "list", "--json")
        (one,) = json.loads(stopped.stdout)["taskmanagers"]
        refused = as_user("ada", "taskmanager", "drain", one["id"])
        assert "ada has the role submit: this needs the role admin" in refused.stderr
    finally:
        (tmp_path / "away.secret").rename(installation.conf / "cluster.secret")
        installation.environment.pop("DREY_SECURITY_TOKEN_FILE", None)
    logs = installation.log_text("jobmanager") + installation.log_text("taskmanager")
    assert not any(token in logs for token in tokens.values())
    assert installation.run("cluster", "stop").returncode == 0
