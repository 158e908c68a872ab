"""Errors of calls between components, other than those that the callee raises itself.

Held by: tests/rpc/test_http_service.py
"""

from __future__ import annotations

from engine.errors import EngineError, ResourceError, VersionMismatchError

#: tolerated difference of two machines' clocks, plus the time on the way
ACCEPTED_MS = 60_000


class RpcTimeoutError(ResourceError, TimeoutError):
    """No reply came before the deadline; the call may still take effect."""


class EndpointUnreachableError(ResourceError, ConnectionError):
    """No endpoint answers at that address."""


class MessageCodecError(EngineError, TypeError):
    """A message or reply is not plain typed data, or its bytes are not a known message."""


class RemoteCallError(EngineError):
    """The called component raised something that is not an engine error."""


class AccessDeniedError(EngineError, PermissionError):
    """A credential or certificate is missing, wrong, too old or used before.

    What to do: use the secret or token of that cluster; the clocks of the machines must differ by less than a minute.
    """


class MissingCredentialError(AccessDeniedError):
    """A request shows no credential where one is needed."""


class ClockDifferenceError(AccessDeniedError):
    """A credential that is valid at another time: the clocks of two machines differ, or it is repeated."""


#: errors of a process that refuses every message of this one, now and later
REFUSES_ALL = (AccessDeniedError, VersionMismatchError)


class UntrustedReplyError(AccessDeniedError, EndpointUnreachableError):
    """A reply does not prove the cluster's secret: another process gave it, or it was changed on the way.

    The call may have taken effect. For callers it is as if no answer had come.
    """


def reason_of(error: BaseException) -> str:
    """Return the text of an error of the system or of a library; its name where it has none."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
