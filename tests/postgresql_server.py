"""A PostgreSQL server of a test run: the machine's own programs, in a temporary folder, on a socket there.

Where a machine has none (Debian: apt-get install postgresql), tests that need it are skipped.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_SETTINGS = "-c listen_addresses='' -c fsync=off -c autovacuum=off -c max_connections=40 -c shared_buffers=16MB"
#: the user whose password is asked for, and it
GUARDED, PASSWORD = "guarded", "s3cret/pass@word"


def _programs():
    """Return the folder of the newest initdb of the machine, None where there is none."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@contextlib.contextmanager
def postgresql():
    """Have a server; yield the URI of its database, in which the user of a test may do everything."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="drey-pg-", dir="/tmp"))
    owner = {}
    if os.geteuid() == 0:
        # The server refuses to run as root.
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        owner = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(program, *arguments):
        with (folder / "output").open("w+") as output:
            done = subprocess.run(
                [programs / program, "-D", folder / "data", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                check=False,
                **owner,
            )
            output.seek(0)
            assert done.returncode == 0, output.read()

    try:
        run("initdb", "-U", "tester", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        (folder / "data/pg_hba.conf").write_text(f"local all {GUARDED} scram-sha-256\nlocal all all trust\n")
        run("pg_ctl", "-w", "-l", folder / "log", "-o", f"-k {folder} {_SETTINGS}", "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
