"""A store that speaks S3, moto's, as a process of its own on loopback."""

import contextlib
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

import obstore
from obstore.store import S3Store

REGION = "us-east-1"
KEYS = {"access_key_id": "test-key-id", "secret_access_key": "test-secret-5f3a"}
#: the server sends an answer's body without waiting for the acknowledgement of its head, which takes 40 ms
_PROGRAM = """
from werkzeug.serving import WSGIRequestHandler
WSGIRequestHandler.disable_nagle_algorithm = True
from moto.server import main
main()
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(url, method, content=None, headers=None, ca_file=None):
    request = urllib.request.Request(url, content, {"Content-Type": "text/plain", **(headers or {})}, method=method)
    context = None if ca_file is None else ssl.create_default_context(cafile=ca_file)
    urllib.request.urlopen(request, timeout=5, context=context).close()


class Store:
    """The server, and a bucket in it."""

    def __init__(self, endpoint, bucket):
        self.endpoint, self.bucket = endpoint, bucket
        options = {"allow_http": True}
        self._client = S3Store(bucket, endpoint=endpoint, region=REGION, client_options=options, **KEYS)

    @property
    def settings(self):
        """Options of an environment that reads from it."""
        return {
            "storage.s3.endpoint": self.endpoint,
            "storage.s3.region": REGION,
            "storage.s3.allow-http": True,
            "storage.s3.access-key-id": KEYS["access_key_id"],
            "storage.s3.secret-access-key": KEYS["secret_access_key"],
        }

    def put(self, key, content):
        """Make an object; return its URL."""
        obstore.put(self._client, key, content)
        return f"s3://{self.bucket}/{key}"

    def put_public(self, key, content):
        """Make an object that may be read without keys; return its URL, which needs no signature."""
        url = f"{self.endpoint}/{self.bucket}/{key}"
        ask(url, "PUT", content, {"x-amz-acl": "public-read"})
        return url

    @contextlib.contextmanager
    def checked_keys(self):
        """Let the server refuse keys that it does not know, which are all of them."""
        ask(f"{self.endpoint}/moto-api/reset-auth", "POST", b"0")
        try:
            yield
        finally:
            ask(f"{self.endpoint}/moto-api/reset-auth", "POST", b"inf")

    def upload(self, folder, key):
        """Make an object of each file of a folder; return the URL of their prefix."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())
        return f"s3://{self.bucket}/{key}"


@contextlib.contextmanager
def running(bucket):
    """Run a server with a bucket until the end of the block."""
    with serving(bucket, free_port()) as endpoint:
        yield Store(endpoint, bucket)


@contextlib.contextmanager
def serving(bucket, port, *options, ca_file=None):
    """Run a server, of TLS where there is a ca_file; the block has its endpoint."""
    server = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "-H", "127.0.0.1", "-p", str(port), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"{'http' if ca_file is None else 'https'}://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                ask(f"{endpoint}/{bucket}", "PUT", ca_file=ca_file)
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    raise
                time.sleep(0.05)
        yield endpoint
    finally:
        server.terminate()
        server.wait(10)
