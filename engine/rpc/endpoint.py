"""RpcEndpoint: a component that answers messages, one at a time, on one event loop.

    class Dispatcher(RpcEndpoint, DispatcherGateway): ...      handlers are the async methods of its protocol
    service.start(endpoint) ─► dispatch(epoch, message) * ─► await stop()

The handler of a message is found by the message's type: each method of the protocol takes one message. State is
touched only on the loop, so there are no locks; between two ``await`` no state changes under a handler. The epoch
is checked before the handler begins. Work that goes on after a reply runs in ``spawn``. An engine error of a handler
goes to the caller. Any other error, an illegal transition, and every error of spawned work are faults of the component:
they are passed to ``on_fatal`` and never lost.

Source: Flink's RpcEndpoint and its main thread executor.
Held by: tests/rpc/test_local_gateway.py
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import typing
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from engine.errors import EngineError, IllegalTransitionError
from engine.rpc.errors import EndpointUnreachableError, MessageCodecError
from engine.rpc.fencing import Fence
from engine.rpc.request import Request

_log = logging.getLogger(__name__)

R = TypeVar("R")


@functools.cache  # a JobMaster for each job has the same one
def handler_names(protocol: type) -> Mapping[type, str]:
    """Return the method name for each message type that a component's protocol answers."""
    names: dict[type, str] = {}
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_"):
            continue
        hints = typing.get_type_hints(method)
        hints.pop("return", None)
        if len(hints) != 1:
            raise TypeError(f"{protocol.__name__}.{name} must take exactly one message")
        (message_type,) = hints.values()
        if not (isinstance(message_type, type) and issubclass(message_type, Request)):
            raise TypeError(f"{protocol.__name__}.{name} takes {message_type}, which is not a Request")
        names[message_type] = name
    return MappingProxyType(names)


class RpcEndpoint:
    """Base of Dispatcher, ResourceManager, JobMaster and TaskExecutor."""

    #: gateway protocol of the component
    protocol: type

    def __init__(self, address: str, fence: Fence, on_fatal: Callable[[BaseException], None] | None = None) -> None:
        self.address = address
        self._fence = fence
        self._on_fatal = on_fatal
        self._is_stopped = False
        self._background: set[asyncio.Task[Any]] = set()
        self._handlers: dict[type, Callable[[Any], Coroutine[Any, Any, Any]]] = {
            message_type: getattr(self, name) for message_type, name in handler_names(self.protocol).items()
        }

    async def dispatch(self, epoch: int, message: object) -> object:
        """Check the epoch, then answer the message; raises what the handler raises."""
        if self._is_stopped:
            raise EndpointUnreachableError(f"{self.address} has stopped")
        self._fence.check(epoch)
        handler = self._handlers.get(type(message))
        if handler is None:
            raise MessageCodecError(f"{self.address} does not answer {type(message).__name__}")
        try:
            return await handler(message)
        except IllegalTransitionError as error:
            self._fatal(error)
            raise
        except EngineError:
            raise
        except Exception as error:
            self._fatal(error)
            raise

    def check_epoch(self, epoch: int) -> None:
        """Raise FencedError for a message that must not act; a transport calls this before it decodes one."""
        self._fence.check(epoch)

    async def complete(self, work: Coroutine[Any, Any, R]) -> R:
        """Return the outcome of work that goes on to its end even when the caller goes away."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self.address}: to its end")
        self._background.add(task)
        task.add_done_callback(self._completed)
        return await asyncio.shield(task)

    def _completed(self, task: asyncio.Task[Any]) -> None:
        # The caller gets the error; without this the loop would report it as lost where the caller has gone away.
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.info("%s: %s", task.get_name(), task.exception())

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run work beside the handlers until it ends or the endpoint stops."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self.address}: {name}")
        self._background.add(task)
        task.add_done_callback(self._work_done)
        return task

    def _work_done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            _log.error("%s failed", task.get_name())
            self._fatal(error)

    def _fatal(self, error: BaseException) -> None:
        _log.error("%s cannot go on", self.address, exc_info=error)
        if self._on_fatal is not None:
            self._on_fatal(error)

    async def stop(self) -> None:
        """Answer nothing more and end all work; idempotent."""
        self._is_stopped = True
        pending = [task for task in self._background if task is not asyncio.current_task()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
