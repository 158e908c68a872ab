"""close_client: ends kazoo's client within some seconds, whatever became of it.

``stop`` has kazoo's thread close the session by an entry in its queue, and waits for that thread without a bound. The
entry is lost when the thread meets a failed authentication at that moment (kazoo's issue 582; its remedy, 688, was
taken back in 744): nothing ends then, and the thread goes on for ever. So a thread of its own waits here, and the entry
is made again from time to time. A client that has not ended after all that is left behind, with a line in the log: its
threads are daemons, and end with the process.

Held by: tests/ha/test_zookeeper_close.py
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any

from kazoo.exceptions import KazooException
from kazoo.protocol.serialization import CloseInstance

_log = logging.getLogger(__name__)

_AGAIN_S = 1.0


def close_client(client: Any, seconds: float) -> bool:
    """Stop and close a client; return whether that was done in so many seconds."""
    closing = threading.Thread(target=_close, args=(client,), name="drey-zookeeper-close", daemon=True)
    closing.start()
    deadline_s = time.monotonic() + seconds
    while closing.is_alive() and (left_s := deadline_s - time.monotonic()) > 0:
        closing.join(min(_AGAIN_S, left_s))
        if closing.is_alive():
            _ask_again(client)
    if closing.is_alive():
        _log.warning("the client of ZooKeeper does not end within %g s and is left behind", seconds)
    return not closing.is_alive()


def _close(client: Any) -> None:
    try:
        client.stop()
        client.close()
    except (KazooException, OSError) as error:  # its thread waits for a server that does not answer, and ends by itself
        _log.warning("the connection to ZooKeeper does not close: %r", error)


def _ask_again(client: Any) -> None:
    """Close the session on the client's thread: it may have lost the first request."""
    with contextlib.suppress(AttributeError, OSError):
        client._queue.append((CloseInstance, None))
        client._connection._write_sock.send(b"\0")
