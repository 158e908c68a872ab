"""Reading without the cluster secret: a token as bearer or as password, a client certificate; and nothing else."""

from __future__ import annotations

import base64
import http.client
import logging
import ssl

import pytest

from engine.errors import ConfigurationError
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_messages import Access, Route, json_response
from engine.rpc.read_access import ReadAccess
from tests.rpc.served import SECRET, WAIT_S, served
from tests.rpc.test_tls import contexts, made

TOKEN = b"a token of the tests, 32 bytes!!"


def basic(user, password):
    return "Basic " + base64.b64encode(user + b":" + password).decode()


BEARER = f"Bearer {TOKEN.decode()}"
GOOD = {
    "bearer": BEARER,
    "small letters": f"bearer {TOKEN.decode()}",
    "basic": basic(b"prometheus", TOKEN),
    "basic without a user": basic(b"", TOKEN),
}
BAD = {
    "none": None,
    "empty": "",
    "another token": BEARER[:-1] + "?",
    "a part of it": BEARER[:-1],
    "more than it": BEARER + "!",
    "no token": "Bearer ",
    "another password": basic(b"admin", b"admin"),
    "the token as user": basic(TOKEN, b""),
    "no colon": "Basic " + base64.b64encode(TOKEN).decode(),
    "not base64": "Basic ????",
    "another scheme": f"Digest {TOKEN.decode()}",
    "the secret": f"Bearer {SECRET.decode()}",
    "long": f"Bearer {TOKEN.decode() * 200}",
}


@pytest.fixture(scope="module")
def far():
    """A server that other machines reach."""
    with served(bind_host="0.0.0.0", readers=ReadAccess(TOKEN)) as one:
        yield one


def status_of(running, method, target, header, body=b""):
    headers = {} if header is None else {AUTHORIZATION: header}
    return running.ask(method, target, body, headers, signed=False)[0]


@pytest.mark.parametrize("header", GOOD.values(), ids=GOOD)
def test_the_token_reads(far, header):
    assert status_of(far, "GET", "/open/x", header) == 200
    assert status_of(far, "HEAD", "/open/x", header) == 200


@pytest.mark.parametrize("header", BAD.values(), ids=BAD)
def test_nothing_else_reads(far, header):
    assert status_of(far, "GET", "/open/x", header) == 401


def test_one_without_a_credential_is_told_what_reads_and_what_writes(far):
    _, body, *_ = far.ask("GET", "/open/x", b"", {}, signed=False)
    assert b"reading needs the read token (security.read-token-file), the token of a user, or" in body
    _, body, *_ = far.ask("POST", "/echo", b"x", {}, signed=False)
    assert b"it needs the cluster's secret" in body


def test_who_may_only_read_is_told_so(far):
    _, body, *_ = far.ask("POST", "/echo", b"x", {AUTHORIZATION: BEARER}, signed=False)
    assert b"the read token only reads" in body
    assert b"web.cancel.enable" not in body
    routes = [Route("PATCH", "/jobs/{job_id}", CancelServed().cancel, Access.CANCEL)]
    with served(bind_host="0.0.0.0", readers=ReadAccess(TOKEN), routes=routes) as one:
        _, body, *_ = one.ask("PATCH", "/jobs/1", b"", {AUTHORIZATION: BEARER}, signed=False)
    assert b"the read token only reads" in body
    assert b"web.cancel.enable" in body


@pytest.mark.parametrize("header", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize(("method", "target"), [("POST", "/echo"), ("PUT", "/streamed"), ("POST", "/wait")])
def test_the_token_changes_nothing(far, method, target, header):
    far.seen.clear()
    assert status_of(far, method, target, header, b"x") == 401
    assert far.seen == []


def test_the_secret_reads_as_before(far):
    assert far.ask("GET", "/open/x")[0] == 200


def test_a_browser_is_told_what_to_ask_for(far):
    connection = http.client.HTTPConnection("127.0.0.1", far.server.port, timeout=WAIT_S)
    try:
        connection.request("GET", "/open/x")
        response = connection.getresponse()
        response.read()
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith('Basic realm="Drey')
    finally:
        connection.close()


def test_the_token_is_in_no_text(far, caplog):
    with caplog.at_level(logging.DEBUG):
        for header in (BEARER, BEARER[:-1], basic(b"u", TOKEN)):
            status_of(far, "GET", "/open/x", header)
            status_of(far, "POST", "/echo", header)
    assert caplog.records
    text = caplog.text + repr(ReadAccess(TOKEN))
    assert TOKEN.decode()[:-1] not in text
    assert base64.b64encode(b"u:" + TOKEN).decode() not in text


def test_without_a_token_file_only_the_secret_reads():
    with served(bind_host="0.0.0.0") as one:
        assert status_of(one, "GET", "/open/x", BEARER) == 401
        assert one.ask("GET", "/open/x")[0] == 200


def test_the_token_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "conf" / "read.token"
    readers = ReadAccess.load_or_create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    token = path.read_text().strip()
    assert len(token) == 64
    assert readers.allows(f"Bearer {token}")
    assert ReadAccess.load_or_create(path).allows(f"Bearer {token}")
    path.chmod(0o644)
    with pytest.raises(ConfigurationError, match=f"others may read the read token.*chmod 600 {path}"):
        ReadAccess.load_or_create(path)


class CancelServed:
    """What a route that cancels is called with."""

    def __init__(self):
        self.bodies = []

    async def cancel(self, request):
        self.bodies.append(request.body)
        return json_response({}, 202)


@pytest.mark.parametrize(
    ("bind_host", "is_allowed", "header", "status"),
    [
        ("0.0.0.0", True, BEARER, 202),
        ("0.0.0.0", True, None, 401),
        ("0.0.0.0", True, BAD["another token"], 401),
        ("0.0.0.0", False, BEARER, 401),
        ("127.0.0.1", True, None, 202),
        ("127.0.0.1", False, None, 401),
    ],
)
def test_who_reads_cancels_where_the_operator_allows_it(bind_host, is_allowed, header, status):
    """Flink's client sends {} as the body."""
    handler = CancelServed()
    routes = [Route("PATCH", "/jobs/{job_id}", handler.cancel, Access.CANCEL)]
    arguments = {"readers": ReadAccess(TOKEN), "readers_cancel": is_allowed, "routes": routes}
    with served(bind_host=bind_host, **arguments) as one:
        assert status_of(one, "PATCH", "/jobs/1?mode=cancel", header, b"{}") == status
        assert handler.bodies == ([b"{}"] if status == 202 else [])
        assert one.ask("PATCH", "/jobs/1?mode=cancel", b"{}")[0] == 202, "signed as ever"
        assert status_of(one, "POST", "/echo", BEARER, b"{}") == 401


def test_a_client_certificate_reads_and_changes_nothing(tmp_path):
    made(tmp_path)
    server_tls, client_tls = contexts(tmp_path)
    with served(credentials=Credentials(SECRET), bind_host="0.0.0.0", tls=server_tls) as one:

        def status(method, target, header=None, context=client_tls):
            connection = http.client.HTTPSConnection("127.0.0.1", one.server.port, timeout=WAIT_S, context=context)
            try:
                connection.request(method, target, headers={AUTHORIZATION: header} if header else {})
                return connection.getresponse().status
            finally:
                connection.close()

        assert status("GET", "/open/x") == 200
        assert status("POST", "/echo") == 401
        assert status("GET", "/open/x", BEARER) == 401, "who says something wrong is not answered"
        stranger = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            status("GET", "/open/x", context=stranger)
