"""Principal: the user that a request comes from, and what its role allows.

    READ     may see what GETs answer
    SUBMIT   may also run jobs, and cancel its own
    ADMIN    may do all that people do

Each role may what those before it may. Messages between processes are for no role: they need the cluster secret.
``HttpRequest.principal`` has the principal of a request, and ``current_principal`` that of the request that is being
answered, for whatever is called on its way.

Held by: tests/rpc/test_user_tokens.py
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass


class Role(enum.IntEnum):
    """Roles; a higher one may do more."""

    READ = 1
    SUBMIT = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        """The role as people write it."""
        return self.name.lower()


@dataclass(frozen=True)
class Principal:
    """A user. Without a name it is known by the cluster secret (ADMIN), by the read token, or not at all (READ)."""

    name: str
    role: Role


#: principals without a name
SECRET_HOLDER = Principal("", Role.ADMIN)
READER = Principal("", Role.READ)

#: principal of the request that is being answered
current_principal: ContextVar[Principal] = ContextVar("current_principal", default=READER)
