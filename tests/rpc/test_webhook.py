"""A receiver hears of each job's end with a signature that it can check, and whatever it does delays nothing."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from engine.clock import SystemClock
from engine.config.secret_keys import is_secret
from engine.dispatcher.end_notices import EndNotices
from engine.errors import ConfigurationError
from engine.gateways.messages import JobOverview
from engine.ids import JobId
from engine.rpc import webhook as webhooks
from engine.rpc.webhook import SIGNATURE_HEADER, TRIES, Webhook

KEY = b"a key of the tests, of 32 bytes!"


class Receiver:
    """A real HTTP server that answers as it is told and keeps what it hears."""

    def __init__(self, *statuses):
        self.statuses, self.heard = list(statuses), []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.heard.append((self.path, dict(self.headers), body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=hidden"

    def __enter__(self):
        self.thread = Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def overview(name="daily", user="ada", state="FAILED"):
    return JobOverview(JobId("a" * 32), name, state, 1_000, 4_000, user=user)


def sent(url, *jobs, seconds=30.0, first_pause_s=0.001):
    """Tell of the ends of jobs and wait until all has been sent or given up."""

    async def body():
        hook = Webhook(url, KEY, SystemClock(), first_pause_s)
        notices = EndNotices(hook)
        before_s = time.monotonic()
        for job in jobs:
            notices.tell(job)
        took_s = time.monotonic() - before_s
        async with asyncio.timeout(seconds):
            while hook._sending:
                await asyncio.sleep(0.005)
        await hook.close()
        return took_s

    return asyncio.run(body())


def test_the_receiver_can_check_who_sent_it_and_when():
    with Receiver() as receiver:
        sent(receiver.url, overview())
    ((path, headers, body),) = receiver.heard
    assert path == "/hook?token=hidden" and headers["Content-Type"] == "application/json"
    assert json.loads(body) == {
        "id": "a" * 32,
        "name": "daily",
        "user": "ada",
        "state": "FAILED",
        "start-time": 1_000,
        "end-time": 4_000,
        "duration": 3_000,
    }
    said_ms, mac = (part.partition("=")[2] for part in headers[SIGNATURE_HEADER].split(","))
    assert hmac.compare_digest(mac, hmac.new(KEY, said_ms.encode() + b"." + body, hashlib.sha256).hexdigest())
    assert abs(int(said_ms) - time.time() * 1000) < 60_000


def test_what_may_pass_is_tried_again():
    with Receiver(500, 429, 503) as receiver:
        sent(receiver.url, overview("first"))
    assert [json.loads(body)["name"] for _, _, body in receiver.heard] == ["first"] * 4


def test_a_text_that_is_not_taken_delays_no_other():
    with Receiver(500) as receiver:
        sent(receiver.url, *(overview(str(number)) for number in range(20)), first_pause_s=1.0)
    names = [json.loads(body)["name"] for _, _, body in receiver.heard]
    (refused,) = (name for name in set(names) if names.count(name) == 2)
    first = names.index(refused)
    assert len(names) == 21 and names.index(refused, first + 1) > first + 1, "others come before it is tried again"


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (404, 1), (302, 1), (500, TRIES)])
def test_a_receiver_that_refuses_is_named_in_the_log_without_its_secrets(status, tries, caplog):
    with Receiver(*[status] * tries) as receiver, caplog.at_level(logging.INFO):
        sent(receiver.url, overview("refused"))
    assert len(receiver.heard) == tries and "/elsewhere" not in {path for path, _, _ in receiver.heard}
    assert f"the end of job {'a' * 32} is not told: it answers {status}" in caplog.text
    assert "hidden" not in caplog.text


def test_a_receiver_that_is_not_there_keeps_nothing_waiting_and_is_given_up(caplog):
    with Receiver() as receiver:
        url = receiver.url
    assert sent(url, *[overview()] * 50) < 5.0, "to tell does not wait"
    assert f"no answer in {TRIES} tries" in caplog.text


def test_the_oldest_is_given_up_for_a_further_one_and_all_when_the_process_ends(monkeypatch, caplog):
    monkeypatch.setattr(webhooks, "QUEUE_MAX", 2)

    async def body():
        hook = Webhook("http://127.0.0.1:9/", KEY, SystemClock(), 60.0)
        for name in ("first", "second", "third"):
            hook.post(name, b"{}")
        await asyncio.sleep(0.05)
        await hook.close()
        await hook.close()

    asyncio.run(body())
    assert "first is not told: more than 2 texts wait" in caplog.text
    assert "not told as this process ends: second, third" in caplog.text


def test_a_url_that_is_none_is_refused_and_one_that_is_counts_as_a_secret():
    for wrong in ("ftp://host/", "host/path", "http:///path"):
        with pytest.raises(ConfigurationError, match="URL of a webhook"):
            Webhook(wrong, KEY, SystemClock())
    assert "secret" not in repr(Webhook("https://host/secret", KEY, SystemClock()))
    assert is_secret("jobmanager.webhook.url") and not is_secret("jobmanager.webhook.key-file")
    assert is_secret("storage.s3.session-token")
    for key in ("flight-sql.token-file", "security.token-file", "security.read-token-file"):
        assert not is_secret(key), "a path is no secret"


def test_without_a_webhook_nothing_is_told():
    EndNotices().tell(overview())
