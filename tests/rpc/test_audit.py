"""Requests that change something are recorded: who, what, and what became of it; never a secret."""

from __future__ import annotations

import http.client
import subprocess
from dataclasses import replace

import msgspec

from engine.rpc import http_server
from engine.rpc.audit import audited
from engine.rpc.credentials import AUTHORIZATION
from engine.rpc.http_messages import Access, HttpError, HttpResponse, Route
from engine.rpc.principal import Role
from engine.rpc.read_access import ReadAccess
from engine.rpc.refusals import Reason
from engine.rpc.user_tokens import UserTokens, add_user
from tests.rpc.served import SECRET, served
from tests.rpc.test_read_access import BEARER, TOKEN
from tests.rpc.test_tls import contexts, made

JOB = "5f" * 16


async def submit(request):
    return HttpResponse(202, audit={"job": JOB, "name": "n" * 1000})


async def cancel(request):
    raise HttpError(409, "it has ended")


async def fail(request):
    raise KeyError(SECRET.decode())


async def read(request):
    return HttpResponse()


async def wait(request):
    async for _ in request.chunks:
        pass
    return HttpResponse(201)


def routes(entries):
    return audited(
        [
            Route("POST", "/jobs", submit),
            Route("POST", "/v1/jobs", submit),
            Route("PATCH", "/jobs/{job_id}", cancel, Access.CANCEL),
            Route("DELETE", "/cluster", fail),
            Route("POST", "/jars/upload", submit),
            Route("PUT", "/jobs/{job_id}/blobs/{key}", wait, is_streamed=True),
            Route("GET", "/jobs", read, Access.OPEN_GET),
            Route("POST", "/rpc/{name}", read),
        ],
        entries.append,
    )


def test_each_change_has_an_entry_with_its_caller_and_its_outcome():
    entries = []
    with served(routes=routes(entries)) as running:
        for method, target in (
            ("POST", "/jobs"),
            ("POST", "/v1/jobs"),
            ("PATCH", f"/jobs/{JOB}?mode=cancel&token=hidden"),
            ("DELETE", "/cluster"),
            ("POST", "/jars/upload"),
            ("PUT", f"/jobs/{JOB}/blobs/{'0' * 64}"),
        ):
            running.ask(method, target, b"the content")
        running.ask("GET", "/jobs")
        running.ask("POST", "/rpc/x")
        told = [(each.what, each.outcome, each.status) for each in entries]
    assert told == [
        ("submit", "done", 202),
        ("submit", "done", 202),
        ("cancel", "refused", 409),
        ("stop-cluster", "failed", 500),
        ("POST /jars/upload", "done", 202),
        ("upload", "done", 201),
    ]
    assert {(each.address, each.credential) for each in entries} == {("127.0.0.1", "secret")}
    assert entries[0].details["job"] == entries[2].details["job_id"] == JOB
    assert entries[2].reason == "it has ended"
    text = msgspec.json.encode(entries).decode()
    assert not [secret for secret in (SECRET.decode(), "hidden", "the content") if secret in text]
    assert len(text) < 3000, "what callers send is cut"


def test_a_request_that_is_refused_for_its_credential_is_no_entry():
    entries = []
    with served(routes=routes(entries)) as running:
        assert running.ask("POST", "/jobs", signed=False)[0] == 401
        assert running.ask("DELETE", "/cluster", headers={AUTHORIZATION: BEARER})[0] == 401
    assert entries == []


def test_a_body_that_is_not_the_signed_one_changes_nothing_and_is_an_entry():
    entries = []
    with served(routes=routes(entries)) as running:
        target = f"/jobs/{JOB}/blobs/{'0' * 64}"
        header = running.credentials.sign("PUT", target, "0" * 64)
        assert running.ask("PUT", target, b"other", {AUTHORIZATION: header})[0] == 401
    assert [(each.what, each.outcome) for each in entries] == [("upload", "refused")]


def test_the_proof_that_a_caller_has_shown_is_told(tmp_path):
    entries = []
    readers = {"readers": ReadAccess(TOKEN), "readers_cancel": True}
    with served(routes=routes(entries), bind_host="0.0.0.0", **readers) as running:
        running.ask("PATCH", f"/jobs/{JOB}", headers={AUTHORIZATION: BEARER})
    with served(routes=routes(entries), readers_cancel=True) as running:
        running.ask("PATCH", f"/jobs/{JOB}", signed=False)
    assert [each.credential for each in entries] == ["read-token", "none"]


def test_what_a_user_has_no_role_for_is_refused_recorded_and_counted(tmp_path):
    entries, before = [], http_server.REFUSALS.counts[Reason.ROLE]
    path = tmp_path / "users.tokens"
    token = add_user(path, "ada", Role.SUBMIT)
    roles = {("DELETE", "/cluster"): Role.ADMIN, ("POST", "/jobs"): Role.SUBMIT}
    known = [replace(route, role=roles.get((route.method, route.path))) for route in routes(entries)]
    with served(routes=known) as running:
        running.server.users = UserTokens(path)
        bearer = {AUTHORIZATION: f"Bearer {token}"}
        assert running.ask("DELETE", "/cluster", headers=bearer)[0] == 403
        assert running.ask("POST", "/jobs", headers=bearer)[0] == 202
    told = [(each.what, each.outcome, each.caller, each.credential, each.status) for each in entries]
    assert told == [("stop-cluster", "refused", "ada", "user-token", 403), ("submit", "done", "ada", "user-token", 202)]
    assert "needs the role admin" in entries[0].reason and token not in str(entries)
    assert http_server.REFUSALS.counts[Reason.ROLE] == before + 1


def test_the_name_in_a_certificate_is_told(tmp_path):
    entries = []
    made(tmp_path)
    tls = contexts(tmp_path)
    far = {"bind_host": "0.0.0.0", "hosts": ("localhost",), "tls": tls.server, "readers_cancel": True}
    with served(routes=routes(entries), **far) as one:
        connection = http.client.HTTPSConnection("localhost", one.server.port, timeout=60, context=tls.client)
        connection.request("PATCH", f"/jobs/{JOB}")
        assert connection.getresponse().status == 409
        connection.close()
    subject = subprocess.run(
        ["openssl", "x509", "-in", tmp_path / "cluster.pem", "-noout", "-subject"], capture_output=True, check=True
    ).stdout.decode()
    (entry,) = entries
    assert entry.credential == "certificate"
    assert entry.caller and f"CN = {entry.caller}" in subject
