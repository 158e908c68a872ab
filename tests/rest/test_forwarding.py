"""A standby and a leader, two servers with the same routes: whoever is asked, the leader answers."""

import asyncio
import hashlib
import http.client
import json
import socket

import pytest

from engine.client.leader_answers import NOT_LEADING
from engine.rest.forwarding import forwarded
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_forwarding import ANSWERED_BY_HEADER, FORWARDED_HEADER, HttpForwarder
from engine.rpc.http_messages import Access, HttpError, HttpResponse, Route, json_response
from engine.rpc.http_server import HttpServer

SECRET = b"the secret of this cluster"
WAIT_S = 60.0
LARGE = 3_000_000


class Parts:
    """Parts of a body; ``broken``: there is an error after some of them."""

    def __init__(self, count, broken=False):
        self.count, self.broken = count, broken

    async def __aiter__(self):
        for number in range(self.count):
            yield bytes([number % 256]) * 10_000
        if self.broken:
            raise RuntimeError("broken")

    async def aclose(self):
        pass


class Member:
    """A server that may lead. ``leader``: as ``forwarded`` asks for it."""

    def __init__(self, name):
        self.name, self.leader, self.seen = name, None, []
        self.credentials = Credentials(SECRET)
        self.server = HttpServer("127.0.0.1", [0], self.credentials, hosts=["localhost"])
        self.forwarder = HttpForwarder()
        self.hang = asyncio.Event()
        routes = (
            Route("GET", "/open/{name}", self.echo, Access.OPEN_GET),
            Route("POST", "/echo", self.echo),
            Route("PATCH", "/echo", self.echo),
            Route("PUT", "/streamed", self.streamed, is_streamed=True),
            Route("GET", "/parts", self.parts, Access.OPEN_GET),
            Route("GET", "/large", self.large, Access.OPEN_GET),
            Route("GET", "/broken", self.broken, Access.OPEN_GET),
            Route("GET", "/refused", self.refused, Access.OPEN_GET),
            Route("GET", "/waiting", self.waiting, Access.OPEN_GET),
            Route("GET", "/gone", self.gone, Access.OPEN_GET),
            Route("GET", "/jobmanager/log", self.echo, Access.OPEN_GET),
        )
        self.server.add_routes(forwarded(routes, lambda: self.leader, self.forwarder))

    async def echo(self, request):
        self.seen.append(request)
        return json_response(
            {
                "by": self.name,
                "method": request.method,
                "target": request.target,
                "query": dict(request.query),
                "body": request.body.decode(),
                "variables": dict(request.variables),
            }
        )

    async def streamed(self, request):
        sha, length = hashlib.sha256(), 0
        async for chunk in request.chunks:
            sha.update(chunk)
            length += len(chunk)
            await asyncio.sleep(0)
        return json_response(
            {"by": self.name, "length": length, "told": request.content_length, "sha": sha.hexdigest()}
        )

    async def parts(self, request):
        return HttpResponse(content_type="text/x", parts=Parts(300), headers={"X-Own": self.name})

    async def large(self, request):
        return HttpResponse(body=bytes(LARGE), content_type="text/y")

    async def broken(self, request):
        return HttpResponse(parts=Parts(3, broken=True))

    async def refused(self, request):
        raise HttpError(418, f"{self.name} is a teapot")

    async def gone(self, request):
        """Have no job any more; with a query, because this process leads no more."""
        if request.query:
            self.leader = ""
        raise HttpError(503, "nothing answers at jobmaster-5f")

    async def waiting(self, request):
        self.seen.append(request)
        await self.hang.wait()
        return json_response({"by": self.name})

    async def close(self):
        self.hang.set()
        await self.server.stop()
        await self.forwarder.close()

    def ask(self, method, target, body=b"", headers=(), signed=True, digest=None):
        """Ask over a connection of its own; return status, headers and body."""
        connection = http.client.HTTPConnection("localhost", self.server.port, timeout=WAIT_S)
        try:
            sent = dict(headers)
            if signed:
                sent[AUTHORIZATION] = self.credentials.sign(
                    method, target, digest or hashlib.sha256(body).hexdigest(), sent.get("X-Drey-Epoch", "")
                )
            connection.request(method, target, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


def with_members(scenario):
    async def run():
        standby, leader = Member("standby"), Member("leader")
        for member in (standby, leader):
            await member.server.start()
        standby.leader = leader.server.address
        try:
            await scenario(standby, leader)
        finally:
            await standby.close()
            await leader.close()

    asyncio.run(run())


def asked(member, *arguments, **options):
    return asyncio.to_thread(member.ask, *arguments, **options)


def test_the_leader_gets_what_the_standby_was_asked_and_verifies_it_itself():
    async def scenario(standby, leader):
        target = "/open/a%2Fb%20c?x=%41&y=&x=2"
        status, headers, body = await asked(standby, "GET", target, signed=False)
        assert status == 200 and headers[ANSWERED_BY_HEADER] == leader.server.address
        answer = json.loads(body)
        assert (answer["by"], answer["target"], answer["variables"]) == ("leader", target, {"name": "a/b c"})
        assert answer["query"]["y"] == ""
        epoch = {"X-Drey-Epoch": "77", "X-Mine": "yes", "Accept-Encoding": "gzip"}
        for method in ("POST", "PATCH"):
            status, _, body = await asked(standby, method, "/echo?a=b", b"content", epoch)
            assert status == 200
            answer = json.loads(body)
            assert (answer["by"], answer["method"], answer["body"]) == ("leader", method, "content")
        seen = leader.seen[-1].headers
        assert seen[AUTHORIZATION].startswith("Drey-HMAC") and seen["X-Mine"] == "yes"
        assert seen["Accept-Encoding"] == "gzip" and seen[FORWARDED_HEADER]
        assert standby.seen == []
        # The leader knows nobody but the caller: the same credential is not good for it twice.
        header = seen[AUTHORIZATION]
        with pytest.raises(Exception, match="used before"):
            leader.credentials.verify("PATCH", "/echo?a=b", header, "77")

    with_members(scenario)


def test_a_request_without_a_good_credential_goes_nowhere():
    async def scenario(standby, leader):
        for headers in ({}, {AUTHORIZATION: Credentials(b"another secret!!!").sign("POST", "/echo")}):
            status, _, _ = await asked(standby, "POST", "/echo", b"x", headers, signed=False)
            assert status == 401
        assert leader.seen == standby.seen == []

    with_members(scenario)


@pytest.mark.parametrize("size", [0, 1, LARGE])
def test_uploads_go_through_in_parts_with_their_length(size):
    async def scenario(standby, leader):
        content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        status, _, body = await asked(standby, "PUT", "/streamed", content)
        assert status == 200
        sha = hashlib.sha256(content).hexdigest()
        assert json.loads(body) == {"by": "leader", "length": size, "told": size, "sha": sha}
        status, _, body = await asked(standby, "PUT", "/streamed", content, digest=hashlib.sha256(b"other").hexdigest())
        assert status == 401, "as the leader itself would have answered"
        assert json.loads(body)["errors"] == ["the body is not the one that was signed"]

    with_members(scenario)


def test_answers_come_in_parts_whole_or_broken_as_the_leader_gave_them():
    async def scenario(standby, leader):
        status, headers, body = await asked(standby, "GET", "/parts", signed=False)
        assert status == 200 and headers["Content-Type"] == "text/x" and headers["X-Own"] == "leader"
        assert body == b"".join(bytes([number % 256]) * 10_000 for number in range(300))
        status, headers, body = await asked(standby, "GET", "/large", signed=False)
        assert (status, headers["Content-Length"], len(body)) == (200, str(LARGE), LARGE)
        status, headers, body = await asked(standby, "HEAD", "/large", signed=False)
        assert (status, body) == (200, b"")
        status, _, body = await asked(standby, "GET", "/refused", signed=False)
        assert (status, json.loads(body)) == (418, {"errors": ["leader is a teapot"]})
        with pytest.raises(http.client.HTTPException):
            await asked(standby, "GET", "/broken", signed=False)

    with_members(scenario)


def test_a_process_is_asked_about_itself_where_it_is_and_a_leader_passes_nothing_on():
    async def scenario(standby, leader):
        _, headers, body = await asked(standby, "GET", "/jobmanager/log", signed=False)
        assert json.loads(body)["by"] == "standby" and ANSWERED_BY_HEADER not in headers
        _, headers, body = await asked(leader, "GET", "/open/a", signed=False)
        assert json.loads(body)["by"] == "leader" and ANSWERED_BY_HEADER not in headers

    with_members(scenario)


@pytest.mark.parametrize("case", ["nobody", "gone", "each other"])
def test_without_a_leader_that_answers_the_caller_is_told_to_come_again(case):
    async def scenario(standby, leader):
        if case == "nobody":
            standby.leader = ""
        elif case == "gone":
            await leader.server.stop()
        else:
            leader.leader = standby.server.address
        status, headers, body = await asked(standby, "GET", "/open/a", signed=False)
        assert status == 503 and headers["Retry-After"] == "1"
        (text,) = json.loads(body)["errors"]
        assert text.startswith("this JobManager does not lead: ") and "\n" not in text
        assert standby.seen == leader.seen == []

    with_members(scenario)


def test_what_went_with_a_leadership_is_asked_of_the_next_leader():
    async def scenario(_, leader):
        for target, said in (
            ("/gone", "nothing answers"),
            ("/gone?lost=1", f"{NOT_LEADING}: it did until now (nothing"),
        ):
            status, _, body = await asked(leader, "GET", target, signed=False)
            assert status == 503
            assert json.loads(body)["errors"][0].startswith(said)

    with_members(scenario)


def test_nobody_waits_for_a_leader_that_leads_no_more():
    async def scenario(standby, leader):
        waiting = asyncio.ensure_future(asked(standby, "GET", "/waiting", signed=False))
        while not leader.seen:
            await asyncio.sleep(0.01)
        standby.leader = "localhost:1"
        status, headers, _ = await asyncio.wait_for(waiting, WAIT_S)
        assert status == 503 and headers["Retry-After"] == "1"

    with_members(scenario)


def test_a_target_that_names_another_host_is_not_gone_to():
    async def scenario(standby, leader):
        def ask():
            with socket.create_connection(("127.0.0.1", standby.server.port), timeout=WAIT_S) as connection:
                connection.sendall(b"GET http://example.invalid/open/a HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return connection.recv(1000).split(b" ")[1]

        assert await asyncio.to_thread(ask) == b"400"
        assert leader.seen == []

    with_members(scenario)
