"""ReadAccess: read-only access to a cluster without the cluster secret. They can change nothing.

    token_file(configuration) ─► path ─► ReadAccess.load_or_create(path) ─► allows(Authorization header)

    Authorization: Bearer <token>                        curl, Prometheus (authorization: credentials_file)
    Authorization: Basic base64(<any user>:<token>)      browsers, curl -u, Prometheus (basic_auth)

The token is a file of its own: it can be given to people and tools, and changed, without the cluster secret, which
starts jobs and so runs code. All JobManagers of a cluster need the same one, because a standby passes the header on.
Tokens are compared in constant time and are in no text: not in ``repr``, errors or logs.

On an unencrypted network people can see the token on its way. With mutual TLS a client certificate is enough to read,
and no token is needed.

Source: RFC 6750 (bearer), RFC 7617 (basic).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import READ_TOKEN_FILE
from engine.rpc.secret_file import load_or_create_secret, place_beside_configuration

#: prompt that a browser shows its user
CHALLENGE = 'Basic realm="Drey: the read token is the password", charset="UTF-8"'
#: longest header that is read; longer ones come from other programs
_HEADER_MAX = 4096
_DEFAULT_FILE = "read.token"


def token_file(configuration: Configuration) -> Path | None:
    """Return the path of the token: ``security.read-token-file``, relative to the folder of config.yaml."""
    return place_beside_configuration(configuration.get(READ_TOKEN_FILE) or _DEFAULT_FILE)


class ReadAccess:
    """The token that lets a caller read."""

    def __init__(self, token: bytes) -> None:
        self._digest = hashlib.sha256(token).digest()

    def __repr__(self) -> str:
        return "ReadAccess(...)"

    @classmethod
    def load_or_create(cls, path: Path) -> ReadAccess:
        """Read the token's file, made first when there is none; ConfigurationError when others may read it."""
        return cls(load_or_create_secret(path, "read token"))

    def allows(self, header: str | None) -> bool:
        """Whether an Authorization header holds the token."""
        given = token_of(header or "")
        return given is not None and hmac.compare_digest(hashlib.sha256(given).digest(), self._digest)


def token_of(header: str) -> bytes | None:
    """Return the token of a bearer, or the password of a basic, Authorization header; None for any other."""
    scheme, _, value = header.partition(" ")
    if len(header) > _HEADER_MAX or scheme.lower() not in ("bearer", "basic"):
        return None
    if scheme.lower() == "bearer":
        return value.strip().encode("utf-8", "surrogateescape")
    try:
        _, separator, password = base64.b64decode(value.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return password if separator else None
