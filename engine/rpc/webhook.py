"""Webhook: sends small JSON texts to one URL of another program, signed, again after failures, beside everything else.

    post(name, body) ─► POST, at most TRIES times ─► taken │ given up, which the log says
    close()          ─► what is not taken is given up

    X-Drey-Signature: t=<ms since 1970>,v1=<hex of HMAC-SHA256(key, "<t>." + body)>

``post`` never waits. Each text has its own tries, so that one that is not taken delays no other: POSTS_MAX are sent at
one time, at most QUEUE_MAX wait. A receiver checks the signature with the key, and that the time is not long ago. It
gets a text at least once where it answers 2xx within the tries; an answer that it made and that was lost is another
try. 408, 429 and 5xx are tried again as no answer is, any other status is final. Redirects are not followed. The URL
may hold secrets, so logs name its host alone. Thread: the event loop only.

Source: Stripe's signatures of webhooks.
Held by: tests/rpc/test_webhook.py
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from engine.clock import Clock
from engine.errors import ConfigurationError

_log = logging.getLogger(__name__)

SIGNATURE_HEADER: Final = "X-Drey-Signature"
#: texts that wait; the oldest is given up for a further one
QUEUE_MAX: Final = 1000
#: requests at one time
POSTS_MAX: Final = 8
TRIES: Final = 6
#: seconds until the second try; each further one waits twice as long
FIRST_PAUSE_S: Final = 1.0
#: limit of one try, seconds
_ANSWER_S: Final = 10.0


def signature(key: bytes, time_ms: int, body: bytes) -> str:
    """Return the value of the header for a body that is sent at that time."""
    return f"t={time_ms},v1={hmac.new(key, f'{time_ms}.'.encode() + body, hashlib.sha256).hexdigest()}"


class Webhook:
    """One receiver.

    Args: url: of the receiver; key: that the receiver knows, too.
    """

    def __init__(self, url: str, key: bytes, clock: Clock, first_pause_s: float = FIRST_PAUSE_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("the URL of a webhook has to be http://HOST/... or https://HOST/...")
        self._url = url
        self._host = parts.hostname
        self._key = key
        self._clock = clock
        self._first_pause_s = first_pause_s
        #: tasks that send texts, oldest first, and of what each text tells
        self._sending: dict[asyncio.Task[None], str] = {}
        self._turns = asyncio.Semaphore(POSTS_MAX)

    def __repr__(self) -> str:
        return f"Webhook({self._host})"

    def post(self, name: str, body: bytes) -> None:
        """Begin to send a text; ``name``: of what it tells, for the log."""
        if len(self._sending) >= QUEUE_MAX:
            oldest = next(iter(self._sending))
            _log.error(
                "webhook %s: %s is not told: more than %d texts wait", self._host, self._sending[oldest], QUEUE_MAX
            )
            del self._sending[oldest]
            oldest.cancel()
        sending = asyncio.get_running_loop().create_task(self._send(name, body), name="webhook")
        self._sending[sending] = name
        sending.add_done_callback(lambda done: self._sending.pop(done, None))

    async def close(self) -> None:
        """Give up what has not been sent; idempotent."""
        sending, self._sending = self._sending, {}
        for each in sending:
            each.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        if sending:
            names = ", ".join(sending.values())
            _log.warning("webhook %s: not told as this process ends: %s", self._host, names)

    async def _send(self, name: str, body: bytes) -> None:
        timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            why = await self._sent(session, body)
        if why:
            _log.error("webhook %s: %s is not told: %s", self._host, name, why)

    async def _sent(self, session: aiohttp.ClientSession, body: bytes) -> str:
        """Send a text; return why it was not taken, or ""."""
        why, pause_s = "", self._first_pause_s
        for tries in range(TRIES):
            if tries:
                await asyncio.sleep(pause_s)
                pause_s *= 2
            headers = {
                "Content-Type": "application/json",
                SIGNATURE_HEADER: signature(self._key, self._clock.wall_ms(), body),
            }
            try:
                async with (
                    self._turns,
                    session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer,
                ):
                    status = answer.status
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = f"no answer in {tries + 1} tries: {type(error).__name__}"
                continue
            if status < 300:
                return ""
            why = f"it answers {status}"
            if status < 500 and status not in (408, 429):
                return why
        return why
