"""A client whose JobManager is gone, or leads no more, asks the next one; and says when there is none."""

import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engine.client.cluster_client import ClusterClient, ClusterUnreachableError
from engine.client.leader_source import FixedAddresses
from engine.errors import ConfigurationError, EngineError, JobNotFoundError
from engine.ids import JobId
from tests.jobmaster.job_graphs import job_graph

JOB = JobId("a" * 32)
PATIENCE_S = 30.0
OVERVIEW = {"jobs": []}


class JobManager:
    """A server that answers as it is told: (status, document), or None: it hangs up."""

    def __init__(self, *answers, port=0):
        self.answers = list(answers)
        self.requests = []
        self.before = lambda: None
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                owner.requests.append((self.command, self.path.partition("?")[0], body))
                owner.before()
                answer = owner.answers.pop(0) if len(owner.answers) > 1 else owner.answers[0]
                if answer is None:
                    self.close_connection = True
                    return
                content = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = answer  # noqa: N815

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = False
            block_on_close = True

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.address = f"127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def serve():
    made = []

    def start(*answers, port=0):
        made.append(JobManager(*answers, port=port))
        return made[-1]

    clients = []
    start.clients = clients
    yield start
    for client in clients:
        client.close()
    for each in made:
        each.close()


class Elected:
    """A LeaderSource that a test moves."""

    count = 1

    def __init__(self, address):
        self.now = address
        self.later = []
        self.closed = False

    def address(self):
        return self.now

    def failed(self, address):
        pass

    def wait(self, seconds):
        if self.later:
            self.now = self.later.pop(0)
        else:
            time.sleep(min(seconds, 0.05))

    def close(self):
        self.closed = True


def errors(text, status=503):
    return status, {"errors": [text]}


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_client_goes_on_with_the_next_leader(serve):
    first, second = serve((200, OVERVIEW), None), serve((200, OVERVIEW))
    source = Elected(first.address)
    source.later = [None, second.address]
    client = ClusterClient(source, patience_s=PATIENCE_S)
    serve.clients.append(client)
    assert client.jobs() == () and client.jobs() == ()
    assert len(second.requests) == 1
    client.close()
    assert source.closed


@pytest.mark.parametrize(
    "answer",
    [
        errors("this JobManager does not lead: none does at present"),
        errors(f"job {JOB} waits to be recovered: its folder is not there"),
        errors("fenced: the epoch in force is 8, the message carries 7"),
        errors("dispatcher has stopped"),
        errors("no answer from dispatcher in 10 s", 504),
        None,
    ],
)
def test_a_submission_is_repeated_until_a_leader_has_taken_it(serve, answer):
    leader = serve((200, OVERVIEW), answer, answer, (202, {"jobid": JOB.value, "is-new": True}))
    client = ClusterClient(leader.address, patience_s=PATIENCE_S)
    serve.clients.append(client)
    client.jobs()
    client.submit(job_graph([1]))
    bodies = {body for method, _, body in leader.requests if method == "POST"}
    assert len(bodies) == 1 and sum(method == "POST" for method, _, _ in leader.requests) >= 3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (errors("there is no job", 404), JobNotFoundError),
        (errors("no room on the disk"), EngineError),
        (errors("wrong", 400), EngineError),
    ],
)
def test_what_a_leader_says_is_believed_at_once(serve, answer, kind):
    leader = serve(answer)
    client = ClusterClient(leader.address, patience_s=PATIENCE_S)
    serve.clients.append(client)
    with pytest.raises(kind, match=answer[1]["errors"][0]):
        client.outcome(JOB, 0.1)
    assert len(leader.requests) == 1


def test_a_leader_that_hangs_is_not_waited_for_when_another_one_leads(serve):
    hangs = threading.Event()
    first, second = serve((200, OVERVIEW)), serve((200, OVERVIEW))
    first.before = lambda: hangs.wait(PATIENCE_S)
    source = Elected(first.address)
    client = ClusterClient(source, first_patience_s=PATIENCE_S)
    serve.clients.append(client)
    mover = threading.Thread(target=lambda: (until_asked(first), setattr(source, "now", second.address)))
    mover.start()
    try:
        assert client.jobs() == () and len(second.requests) == 1
    finally:
        hangs.set()
        mover.join()


def until_asked(server):
    deadline = time.monotonic() + PATIENCE_S
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.01)


def test_several_addresses_are_tried_until_one_leads(serve):
    standby = serve(errors("this JobManager does not lead: another does"))
    leader = serve((200, OVERVIEW))
    client = ClusterClient(f"127.0.0.1:{unused_port()}, {standby.address},{leader.address}")
    serve.clients.append(client)
    assert client.jobs() == () and client.jobs() == ()
    assert len(standby.requests) == 1 and len(leader.requests) == 2


def test_patience_ends_with_the_last_reason_and_one_line_says_that_it_waits(serve):
    leader = serve((200, OVERVIEW), errors("this JobManager does not lead: none does at present"))
    told = []
    client = ClusterClient(leader.address, patience_s=2.5, on_waiting=told.append)
    serve.clients.append(client)
    client.jobs()
    with pytest.raises(ClusterUnreachableError, match=r"none does at present.*bin/start-cluster\.sh"):
        client.jobs()
    assert len(told) == 1 and "does not lead" in told[0]


def test_who_never_answered_is_not_waited_for(serve):
    told = []
    client = ClusterClient(f"127.0.0.1:{unused_port()}", patience_s=3600, on_waiting=told.append)
    with pytest.raises(ClusterUnreachableError, match="Connection refused"):
        client.jobs()
    assert told == []
    nobody = Elected(f"127.0.0.1:{unused_port()}")
    elected = ClusterClient(nobody, patience_s=3600, first_patience_s=2.5, on_waiting=told.append)
    with pytest.raises(ClusterUnreachableError):
        elected.jobs()
    assert len(told) == 1


def test_tls_on_one_side_alone_is_told_with_what_to_do(serve):
    silent, plain = serve(None), serve((200, OVERVIEW))
    with_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for server, tls, remedy in (
        (silent, None, "if it has TLS, set security.ssl.enabled here"),
        (plain, with_tls, "it may have no TLS: security.ssl.enabled is set here"),
    ):
        client = ClusterClient(server.address, tls=tls)
        serve.clients.append(client)
        with pytest.raises(ClusterUnreachableError, match=remedy):
            client.jobs()


def test_a_client_that_is_interrupted_does_not_wait_long(serve):
    leader = serve((200, OVERVIEW), errors("this JobManager does not lead: none does at present"))
    client = ClusterClient(leader.address, patience_s=3600)
    serve.clients.append(client)
    client.jobs()
    client.limit_patience(0.1)
    with pytest.raises(ClusterUnreachableError):
        client.cancel(JOB)


@pytest.mark.parametrize("text", ["", " , ", "localhost", "localhost:", "a:1,b", ":8081"])
def test_what_is_no_address_says_so(text):
    with pytest.raises(ConfigurationError, match="write host:port"):
        FixedAddresses(text)
