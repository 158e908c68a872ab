"""HttpServer: the one server of a process, for calls of components, REST and blobs, behind one set of checks.

    server = HttpServer(bind_host, ports, credentials) ─► add_routes(routes) ─► start ─► host, port ─► stop

    head ─► Host header (403) ─► route (404, 405) ─► credential (401), role (403) ─► program (412)
         ─► declared length (413) ─► body, within the route's limit (413) and time (408) ─► its digest (401)
         ─► handler ─► answer

No byte of a body is read before the credential is verified, and none is parsed before the digest is. Every route says
its access level (``Access``): the list of routes is the list of all endpoints. Off loopback nothing is open: reading
takes the secret, the read token or a client certificate, and all else the secret; a server without credentials or
mutual TLS does not start. A user's token opens the routes that its role has; one that may change something is taken
on loopback or over TLS alone, since people on the network could read it. What needs more than the role to read is not
open to the read token. A foreign Host header is refused: pages of
other sites that make a browser on this machine call us cannot forge it. Health alone (``Access.ANYONE``), which
says nothing, is answered to all.

A caller that says which program it is must be of this one's version (``program``), and routes with messages between
processes want to hear it; people and their tools say nothing and are answered.

Errors are ``{"errors": [text]}``. Of a refused request only method, path and the caller's address are logged; refused
credentials, clocks and versions are counted as well (``refusals``). When a caller goes away, its handler is cancelled.

A handler may answer that the connection speaks another protocol from here on (``HttpResponse.upgraded``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

from engine.errors import ConfigurationError, VersionMismatchError
from engine.network_address import address_text, bind_socket, canonical_host, is_loopback, is_wildcard
from engine.rpc.credentials import AUTHORIZATION, EMPTY_DIGEST, Credentials
from engine.rpc.errors import AccessDeniedError, ClockDifferenceError, MissingCredentialError
from engine.rpc.http_connection import ConnectionGuard, ConnectionLimits, request_begins, request_ends
from engine.rpc.http_messages import (
    Access,
    Caller,
    HttpError,
    HttpRequest,
    HttpResponse,
    Route,
    UpgradedConnection,
    error_response,
)
from engine.rpc.principal import READER, SECRET_HOLDER, Principal, Role, current_principal
from engine.rpc.program import PROGRAM_HEADER, Program
from engine.rpc.read_access import CHALLENGE, ReadAccess
from engine.rpc.refusals import REFUSALS, Reason
from engine.rpc.user_tokens import UserTokens

EPOCH_HEADER = "X-Drey-Epoch"

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
#: seconds for requests to end when the server stops, and again for their cancellation
_STOP_S = 0.5
_BACKLOG = 256

_log = logging.getLogger(__name__)


class HttpServer:
    """Routes under one address.

    Args:
        bind_host: interface to listen on.
        ports: tried in order; 0 is any free one.
        credentials: the cluster secret; without it only open routes can be called.
        tls: mutual TLS; plain HTTP without.
        hosts: names under which others may ask this process; they are told the first. Default: the interface's.
        limits: of connections.
        readers: the token for reading beyond loopback without the secret; None: the secret is needed.
        readers_cancel: whether people who may read may also cancel jobs.
    """

    def __init__(
        self,
        bind_host: str,
        ports: Sequence[int],
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        hosts: Sequence[str] = (),
        limits: ConnectionLimits | None = None,
        *,
        readers: ReadAccess | None = None,
        readers_cancel: bool = False,
    ) -> None:
        #: program of this process, which callers that name theirs must match; None: any caller
        self.program: Program | None = None
        #: users by their tokens; None: there are none
        self.users: UserTokens | None = None
        self._readers = readers
        self._readers_cancel = readers_cancel
        self._bind_host = bind_host
        self._ports = tuple(ports)
        self._credentials = credentials
        self._tls = tls
        self._is_loopback = is_loopback(bind_host)
        self._is_any = is_wildcard(bind_host)
        self.host = hosts[0] if hosts else (socket.gethostname() if self._is_any else bind_host)
        self._names = {canonical_host(name) for name in (self.host, bind_host, *hosts) if not is_wildcard(name)}
        self.port = 0
        self._limits = limits or ConnectionLimits()
        self._routes: list[Route] = []
        #: paths that answer whatever host a request names
        self._open_paths: frozenset[str] = frozenset()
        self._guard: ConnectionGuard | None = None
        self._listener: asyncio.Server | None = None
        self._runner: web.AppRunner | None = None
        #: connections that speak another protocol now
        self._upgraded: set[UpgradedConnection] = set()

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes."""
        return tuple(self._routes)

    @property
    def address(self) -> str:
        """``host:port`` once it has started."""
        return address_text(self.host, self.port)

    def add_routes(self, routes: Iterable[Route]) -> None:
        """Add routes; only before ``start``."""
        if self._runner is not None:
            raise RuntimeError("routes are added before the server starts")
        self._routes.extend(routes)

    async def start(self) -> None:
        """Listen; ConfigurationError when no port is free, or when other machines could call without a credential."""
        if not self._is_loopback and self._credentials is None and not _is_mutual(self._tls):
            raise ConfigurationError(
                f"a server on {self._bind_host or 'all interfaces'} would be open to the network: set "
                "security.secret-file or security.ssl.enabled, or bind to localhost"
            )
        listening = _listening_socket(self._bind_host, self._ports)
        self.port = listening.getsockname()[1]
        self._open_paths = frozenset(route.path for route in self._routes if route.access is Access.ANYONE)
        application = web.Application()
        for route in self._routes:
            application.router.add_route(route.method, route.path, self._endpoint(route))
            if route.method == "GET":
                application.router.add_route("HEAD", route.path, self._endpoint(route))
        application.middlewares.append(self._answer)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        assert self._runner.server is not None, "the runner is set up"
        self._guard = ConnectionGuard(self._runner.server, self._limits)
        self._guard.start()
        self._listener = await asyncio.get_running_loop().create_server(
            self._guard,
            sock=listening,
            ssl=self._tls,
            ssl_handshake_timeout=self._limits.head_timeout_s if self._tls is not None else None,
            backlog=_BACKLOG,
        )

    async def stop(self) -> None:
        """Close the socket and all connections; idempotent."""
        if self._runner is None or self._listener is None or self._guard is None:
            return
        runner, self._runner = self._runner, None
        self._listener.close()
        await self._guard.stop()
        for connection in tuple(self._upgraded):
            connection.end()
        await runner.cleanup()

    # ---- checks, in their order ----

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        request_begins(request.protocol)
        try:
            if request.path not in self._open_paths:
                self._check_host(request)
            response: web.StreamResponse = await handler(request)
            return response
        except HttpError as error:
            return _refused(request, error.status, str(error))
        except AccessDeniedError as error:
            return self._denied(request, error)
        except VersionMismatchError as error:
            _note(request, Reason.VERSION, error)
            return _answered(request, error_response(web.HTTPPreconditionFailed.status_code, str(error)))
        except web.HTTPException as error:  # of the router
            refused = _refused(
                request, error.status, f"{error.reason}: {request.method} {request.rel_url.raw_path}"[:200]
            )
            if "Allow" in error.headers:  # which methods there are
                refused.headers["Allow"] = error.headers["Allow"]
            return refused
        except TimeoutError:
            return _refused(request, web.HTTPRequestTimeout.status_code, "the body did not come in time")
        except (web.RequestPayloadError, asyncio.IncompleteReadError):
            return _refused(request, web.HTTPBadRequest.status_code, "the body is malformed")
        except ConnectionError:  # the caller is gone, or this server stops: there is no answer to send
            raise
        except Exception:
            _log.exception("%s %s failed", request.method, request.rel_url.raw_path)
            return _answered(request, error_response(500, "the server failed; its log tells why"))
        finally:
            request_ends(request.protocol)

    def _check_host(self, request: web.Request) -> None:
        name = _host_name(request.headers.get("Host", ""))
        if name in _LOOPBACK_NAMES and self._is_loopback:
            return
        if name in self._names:
            return
        sockname = request.transport.get_extra_info("sockname") if request.transport is not None else None
        if sockname and name in (canonical_host(sockname[0]), socket.gethostname().lower()):
            return
        if name in _LOOPBACK_NAMES and self._is_any:
            return
        raise HttpError(
            403,
            "the Host header names another host; this one is what jobmanager.rpc.address, rest.address and "
            "taskmanager.host say, and web.allowed-hosts has further names",
        )

    def _endpoint(self, route: Route) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            digest, principal, proof = self._check_access(route, request)
            current_principal.set(principal)
            says_program = self._check_program(route, request)
            length = request.content_length
            if length is not None and length > route.body_limit:
                raise HttpError(413, f"the body has {length} bytes, at most {route.body_limit} are allowed")
            chunks = _checked_chunks(request, route.body_limit, digest)
            body = b""
            if not route.is_streamed:
                async with asyncio.timeout(route.body_timeout_s):
                    body = b"".join([chunk async for chunk in chunks])
            response = await route.handler(
                HttpRequest(
                    request.method,
                    request.rel_url.raw_path,
                    request.match_info,
                    request.query,
                    request.headers,
                    body,
                    digest,
                    -1 if length is None else length,
                    chunks if route.is_streamed else None,
                    request.raw_path,
                    _caller(request, proof, principal.name),
                    principal,
                )
            )
            own = {PROGRAM_HEADER: self.program.header} if self.program is not None and says_program else {}
            if response.upgraded is not None:
                return await self._upgrade(request, response.upgraded, {**response.headers, **own})
            return await _sent(request, response, own)

        return answer

    async def _upgrade(
        self, request: web.Request, connection: UpgradedConnection, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Have a connection speak another protocol, until it ends."""
        answer = web.StreamResponse(status=HTTPStatus.SWITCHING_PROTOCOLS, headers=headers)
        answer.force_close()
        protocol, transport = request.protocol, request.transport
        if transport is None:
            raise ConnectionResetError("the caller is gone")
        await answer.prepare(request)
        await answer.write_eof()
        if transport.is_closing():
            raise ConnectionResetError("the caller is gone")
        transport.set_protocol(connection)
        connection.connection_made(transport)
        self._upgraded.add(connection)
        connection.closed.add_done_callback(lambda _: self._upgraded.discard(connection))
        # The library's own protocol hears of nothing any more.
        connection.closed.add_done_callback(lambda _: protocol.connection_lost(None))
        await connection.closed
        return answer

    def _check_program(self, route: Route, request: web.Request) -> bool:
        """Return whether the caller says which program it is, after it was found to be this one."""
        header = request.headers.get(PROGRAM_HEADER)
        if self.program is not None and (header is not None or route.is_internal):
            self.program.check(header, request.remote or "an unknown address")
        return header is not None

    def _check_access(self, route: Route, request: web.Request) -> tuple[str, Principal, str]:
        """Return the digest that the body must have ("": any), the user that asks, and the proof that it has shown."""
        if route.access is Access.ANYONE:
            return EMPTY_DIGEST, READER, ""
        user = self._user_of(route, request)
        if user is not None:
            request.protocol.is_trusted = True  # type: ignore[attr-defined]
            return EMPTY_DIGEST if route.access is Access.OPEN_GET else "", user, "user-token"
        is_open = route.access is Access.OPEN_GET and (self._is_loopback or route.role in (None, Role.READ))
        if is_open and (proof := self._proof_of_reader(request)):
            return EMPTY_DIGEST, READER, proof
        if route.access is Access.CANCEL and self._readers_cancel and (proof := self._proof_of_reader(request)):
            return "", READER, proof  # an unsigned request has no digest
        if self._credentials is not None:
            # As it came: the library's normalized form was not signed.
            target, epoch = request.raw_path, request.headers.get(EPOCH_HEADER, "")
            header = request.headers.get(AUTHORIZATION)
            if header is None and is_open and self._readers is not None and not _is_mutual(self._tls):
                raise MissingCredentialError(
                    "the request carries no credential: beyond loopback, reading needs the read token "
                    "(security.read-token-file), the token of a user, or the cluster's secret"
                )
            self._check_is_no_reader(route, header)
            digest = self._credentials.verify(request.method, target, header, epoch)
            request.protocol.is_trusted = True  # type: ignore[attr-defined]
            return digest, SECRET_HOLDER, "secret"
        if _is_mutual(self._tls):
            return "", SECRET_HOLDER, "certificate"
        raise MissingCredentialError("this server has no cluster secret, so this cannot be called")

    def _user_of(self, route: Route, request: web.Request) -> Principal | None:
        """Return the user whose token the request has; HttpError 403 where its role is not enough."""
        user = self.users.find(request.headers.get(AUTHORIZATION)) if self.users is not None else None
        if user is None:
            return None
        if user.role > Role.READ and not self._is_loopback and self._tls is None:
            raise HttpError(
                403,
                f"a token of the role {user.role.text} is taken over TLS alone (security.ssl.enabled) where a process "
                "listens beyond its machine: people who watch the network can read it",
            )
        if route.role is None or user.role < route.role:
            needed = "the cluster secret" if route.role is None else f"the role {route.role.text}"
            why = f"{user.name} has the role {user.role.text}: this needs {needed}"
            if route.on_refused is not None:
                route.on_refused(_caller(request, "user-token", user.name), request.rel_url.raw_path, why)
            _note(request, Reason.ROLE, why)
            raise HttpError(403, why)
        return user

    def _check_is_no_reader(self, route: Route, header: str | None) -> None:
        """Raise MissingCredentialError that explains it, for a caller whose token or certificate only lets it read."""
        if header is None and _is_mutual(self._tls):
            what = "a client certificate"
        elif self._readers is not None and self._readers.allows(header):
            what = "the read token"
        else:
            return
        cancels = "; to let it cancel jobs, set web.cancel.enable: true" if route.access is Access.CANCEL else ""
        raise MissingCredentialError(
            f"{what} only reads: this needs the cluster secret, as bin/flink-run has it{cancels}"
        )

    def _proof_of_reader(self, request: web.Request) -> str:
        """Return the proof of a caller that may read; "" when it may not."""
        if self._is_loopback:
            return "none"
        header = request.headers.get(AUTHORIZATION)
        has_shown = header is None if _is_mutual(self._tls) else False  # its certificate, which is all it needs
        if has_shown or (self._readers is not None and self._readers.allows(header)):
            request.protocol.is_trusted = True  # type: ignore[attr-defined]
            return "certificate" if has_shown else "read-token"
        return ""

    def _denied(self, request: web.Request, error: AccessDeniedError) -> web.StreamResponse:
        """Refuse a caller, and have browsers ask for the read token where one would do."""
        _note(request, _reason_of(error), error)
        response = _answered(request, error_response(web.HTTPUnauthorized.status_code, str(error)))
        if self._readers is not None and request.method in ("GET", "HEAD"):
            response.headers["WWW-Authenticate"] = CHALLENGE
        return response


def _is_mutual(tls: ssl.SSLContext | None) -> bool:
    return tls is not None and tls.verify_mode is ssl.CERT_REQUIRED


def _listening_socket(host: str, ports: Sequence[int]) -> socket.socket:
    reason = "no port is given"
    for port in ports:
        try:
            candidate = bind_socket(host, port)
        except OSError as error:
            reason = error.strerror or str(error)
            continue
        try:
            candidate.listen(_BACKLOG)
        except OSError as error:
            candidate.close()
            reason = error.strerror or str(error)
        else:
            candidate.setblocking(False)
            return candidate
    tried = ", ".join(str(port) for port in ports[:3]) + (", ..." if len(ports) > 3 else "")
    raise ConfigurationError(f"cannot listen on {host} port {tried}: {reason}")


def _host_name(header: str) -> str:
    """Return the name of a Host header in its one spelling, without the port."""
    header = header.strip()
    name = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
    return canonical_host(name)


async def _checked_chunks(request: web.Request, limit: int, digest: str) -> AsyncIterator[bytes]:
    """Yield the body in parts; raises when it is too long or, at its end, when its digest is another."""
    seen, sha = 0, hashlib.sha256()
    async for chunk in request.content.iter_any():
        seen += len(chunk)
        if seen > limit:
            raise HttpError(413, f"the body has more than {limit} bytes")
        sha.update(chunk)
        yield chunk
    if digest and not hmac.compare_digest(sha.hexdigest(), digest):
        raise AccessDeniedError("the body is not the one that was signed")


def _caller(request: web.Request, credential: str, user: str) -> Caller:
    certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
    names = dict(pair for part in (certificate or {}).get("subject", ()) for pair in part)
    return Caller(request.remote or "", credential, user or names.get("commonName", ""))


def _reason_of(error: AccessDeniedError) -> Reason:
    if isinstance(error, ClockDifferenceError):
        return Reason.CLOCK
    return Reason.MISSING_SECRET if isinstance(error, MissingCredentialError) else Reason.WRONG_SECRET


def _note(request: web.Request, reason: Reason, error: object) -> None:
    what = f"{request.method} {request.rel_url.raw_path:.200}"
    REFUSALS.note(reason, request.remote or "an unknown address", what, str(error))


def _refused(request: web.Request, status: int, reason: str) -> web.StreamResponse:
    path, remote = request.rel_url.raw_path, request.remote
    _log.info("%s %.200s from %s is refused with %d: %s", request.method, path, remote, status, reason)
    return _answered(request, error_response(status, reason))


def _answered(request: web.Request, response: HttpResponse) -> web.Response:
    """Return an error; when the body was not read the connection is closed after it."""
    answer = web.Response(
        status=response.status, body=response.body, content_type=response.content_type, headers=_SAFE_HEADERS
    )
    if not request.content.is_eof():
        answer.force_close()
    return answer


async def _sent(request: web.Request, response: HttpResponse, own: Mapping[str, str]) -> web.StreamResponse:
    # What another process said, to which the request was passed on, wins over what this one says of itself.
    headers = {**_SAFE_HEADERS, **own, **response.headers, "Content-Type": response.content_type}
    if response.file is not None:
        return web.FileResponse(response.file, status=response.status, headers=headers)
    if response.parts is None:
        return web.Response(status=response.status, body=response.body, headers=headers)
    streamed = web.StreamResponse(status=response.status, headers=headers)
    try:
        await streamed.prepare(request)
        async for part in response.parts:
            await streamed.write(part)
        await streamed.write_eof()
    except Exception as error:
        # The status is sent already: only an answer that breaks off can still tell the caller.
        told = "the answer to %s %s breaks off", request.method, request.rel_url.raw_path
        if isinstance(error, ConnectionResetError):
            _log.info(*told)  # the caller has gone
        else:
            _log.exception(*told)
        streamed.force_close()
        if request.transport is not None:
            request.transport.abort()
    finally:
        await response.parts.aclose()
    return streamed
