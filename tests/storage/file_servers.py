"""Servers of files, as processes of their own on loopback: SFTP by asyncssh, FTP by pyftpdlib."""

import contextlib
import subprocess
import sys
import time

import pytest

from tests.storage.moto_server import free_port

USER, PASSWORD = "tester", "hush-8151"
_SFTP = """
import asyncio, sys, asyncssh

class Server(asyncssh.SSHServer):
    def password_auth_supported(self):
        return True

    def validate_password(self, user, password):
        return [user, password] == sys.argv[3:5]

async def main():
    key = asyncssh.generate_private_key("ssh-ed25519")
    chroot = lambda channel: asyncssh.SFTPServer(channel, chroot=sys.argv[2])
    port, options = int(sys.argv[1]), {"server_host_keys": [key], "sftp_factory": chroot}
    await asyncssh.listen("127.0.0.1", port, server_factory=Server, **options)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
_FTP = """
import sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
FTPHandler.authorizer = DummyAuthorizer()
FTPHandler.authorizer.add_user(sys.argv[3], sys.argv[4], sys.argv[2], perm="elradfmwMT")
server = FTPServer(("127.0.0.1", int(sys.argv[1])), FTPHandler)
print("ready", flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def serving(scheme, folder):
    """Serve a folder; yield (root of URLs, options)."""
    for package in {"sftp": ("fsspec", "paramiko", "asyncssh"), "ftp": ("fsspec", "pyftpdlib")}[scheme]:
        pytest.importorskip(package)
    port, program = free_port(), {"sftp": _SFTP, "ftp": _FTP}[scheme]
    command = [sys.executable, "-c", program, str(port), str(folder), USER, PASSWORD]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        line, deadline = b"", time.monotonic() + 60
        while b"ready" not in line and time.monotonic() < deadline:
            line = server.stdout.readline()
            assert line or server.poll() is None, "the server ended"
        yield f"{scheme}://127.0.0.1:{port}", {"username": USER, "password": PASSWORD}
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()
