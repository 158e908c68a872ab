"""What each error of a store says: what is wrong, bucket, key, request and what to do."""

import errno
import http.server
import socket
import ssl
import subprocess
import threading
from datetime import timedelta

import pytest

from engine.errors import PlanError
from engine.storage import store_client
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from engine.storage.store_errors import explained

SECRET = "hush-4711"
#: status, code of the answer; number, and what the message says
ANSWERS = [
    (404, "NoSuchKey", errno.ENOENT, "there is no such object"),
    (404, "NoSuchBucket", errno.ENXIO, "there is no such bucket (NoSuchBucket, request R-1); look at its name"),
    (404, "ContainerNotFound", errno.ENXIO, "there is no such bucket"),
    (403, "AccessDenied", errno.EACCES, "access is denied (AccessDenied, request R-1); its credentials may not do"),
    (403, "InvalidAccessKeyId", errno.EACCES, "the credentials are wrong"),
    (403, "SignatureDoesNotMatch", errno.EACCES, "the credentials are wrong"),
    (403, "ExpiredToken", errno.EACCES, "the credentials have expired"),
    (400, "ExpiredToken", errno.EACCES, "the credentials have expired"),
    (403, "RequestTimeTooSkewed", errno.EACCES, "the clock of this machine is wrong"),
    (403, "InvalidObjectState", errno.EACCES, "the object is archived (InvalidObjectState, request R-1); restore it"),
    (403, "", errno.EACCES, "access is denied"),
    (401, "", errno.EACCES, "the credentials are wrong"),
    (301, "PermanentRedirect", errno.EREMCHG, "the bucket is in another region"),
    (400, "AuthorizationHeaderMalformed", errno.EREMCHG, "another region (Auth"),
    (400, "", errno.EIO, "it refuses the request (400 Bad Request); look at the region"),
    (503, "SlowDown", errno.EBUSY, "the store is too busy (SlowDown, request R-1)"),
    (500, "InternalError", errno.EREMOTEIO, "the store has an error of its own (InternalError, request R-1)"),
    (501, "NotImplemented", errno.ENOTSUP, "the store cannot do this"),
    (507, "", errno.EDQUOT, "the store is full"),
]


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        """Answer as the server was told; a HEAD without the text."""
        status, code = self.server.answer
        text = f"<Error><Code>{code}</Code><Message>{SECRET}</Message><RequestId>R-1</RequestId></Error>"
        body = text.encode() if code else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the server's name


@pytest.fixture(scope="module")
def server():
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found.daemon_threads = True
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture(autouse=True)
def few_tries(monkeypatch):
    monkeypatch.setitem(store_client._RETRIES, "max_retries", 1)
    monkeypatch.setitem(store_client._RETRIES, "retry_timeout", timedelta(seconds=1))
    monkeypatch.setitem(
        store_client._RETRIES,
        "backoff",
        {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2},
    )
    monkeypatch.setattr(store_client, "_TIMEOUT", timedelta(seconds=1))
    store_client._clients.clear()
    yield
    store_client._clients.clear()
    use_store_settings({})


def use(endpoint):
    settings = {"endpoint": endpoint, "region": "r", "access-key-id": "id", "secret-access-key": SECRET}
    use_store_settings({f"storage.s3.{key}": text for key, text in {**settings, "allow-http": "true"}.items()})


def error_of(path="s3://data/folder/key"):
    with pytest.raises(OSError) as caught:
        file_system_of(path).open_ranges(path, is_tail_wanted=True)
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value.__context__)
    assert caught.value.filename == path, "bucket and key"
    return caught.value


@pytest.mark.parametrize(("status", "code", "number", "message"), ANSWERS, ids=lambda value: str(value)[:20])
def test_an_answer_is_explained(server, status, code, number, message):
    server.answer = status, code
    use(f"http://127.0.0.1:{server.server_address[1]}")
    path = "s3://data/folder/key"
    with pytest.raises(OSError) as caught:
        file_system_of(path).read_version(path) or file_system_of(path).open_ranges(path, is_tail_wanted=True)
    assert caught.value.errno == number, caught.value
    assert message in str(caught.value) and path in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_server_that_is_not_there_or_not_known_or_silent_is_told(server):
    use("http://127.0.0.1:9")
    assert "nothing listens at its address; look at storage.s3.endpoint" in str(error_of())
    use("http://nowhere.invalid")
    assert "the name of its host is not known; look at storage.s3.endpoint and at DNS" in str(error_of())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        use(f"http://127.0.0.1:{silent.getsockname()[1]}")
        error = error_of()
        assert "it does not answer in time; look at the network, storage.s3.endpoint" in str(error)
        assert error.errno == errno.ETIMEDOUT


def test_tls_that_fails_is_told(server, tmp_path):
    use(f"https://127.0.0.1:{server.server_address[1]}")
    assert "it does not speak TLS; look at storage.s3.endpoint: http:// or https://" in str(error_of())
    key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*key, *names, "-keyout", tmp_path / "k", "-out", tmp_path / "c"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c", tmp_path / "k")
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found.daemon_threads = True
    found.socket = context.wrap_socket(found.socket, server_side=True)
    found.handle_error = lambda *_: None
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        use(f"https://127.0.0.1:{found.server_address[1]}")
        assert "its certificate is not trusted" in str(error_of())
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def test_an_endpoint_is_a_url():
    use("127.0.0.1:9000")
    with pytest.raises(PlanError, match=r"storage\.s3\.endpoint is a URL: it begins with https://"):
        file_system_of("s3://data").find("s3://data/a")


@pytest.mark.parametrize(
    ("name", "text", "family", "expected"),
    [
        ("GenericError", "GET http://169.254.169.254/latest/api/token", "s3", (errno.EIO, "there are no credentials")),
        ("GenericError", "http://metadata.google.internal/", "gcs", (errno.EIO, "there are no credentials")),
        ("GenericError", "nothing known", "azure", (errno.EIO, "look at the network, storage.azure.endpoint")),
        ("PermissionDeniedError", "", "http", (errno.EACCES, "asks for a login, which is not supported")),
        ("PreconditionError", "<Code>AccessDenied</Code>", "s3", (errno.ESTALE, "it was replaced meanwhile")),
        ("FileNotFoundError", "RequestId:cfef-60\nTime: now", "azure", (errno.ENOENT, "(request cfef-60)")),
    ],
)
def test_causes_are_found_in_texts(name, text, family, expected):
    number, message = explained(name, text, family)
    assert number == expected[0] and expected[1] in message
