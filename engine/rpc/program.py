"""Program: which Drey a process runs, said by both sides of every conversation and compared before anything else.

    own_program("TaskManager", protocol) ─► header ─► the other side: check(header, where it comes from)

    0.2.0 9f31c2aa tm-7 TaskManager       header: version, protocol, host, role; each a word

Two programs understand each other when version and protocol are the same. The protocol is a fingerprint of the messages
(``engine.gateways.protocol``), so that it tells apart two builds of one version, too. A program that reports nothing
has a version from before there was anything to say. Text of unproved peers reaches logs and pages: other characters
than those of names make it unreadable.

Held by: tests/rpc/test_program.py
"""

from __future__ import annotations

import re
import socket

import msgspec

from engine import __version__
from engine.errors import VersionMismatchError

#: the header of requests and of their answers
PROGRAM_HEADER = "X-Drey-Program"
_WORD = re.compile(r"[A-Za-z0-9._+:-]{1,255}")
_REMEDY = "install the same version on all machines, and start again what has another one"


class Program(msgspec.Struct, frozen=True):
    """The Drey of one process."""

    version: str = ""
    #: fingerprint of the messages
    protocol: str = ""
    host: str = ""
    #: role of the process: JobManager, TaskManager, client
    role: str = "process"

    def __str__(self) -> str:
        return f"the {self.role} on {self.host} has Drey {self.version} (protocol {self.protocol})"

    @property
    def header(self) -> str:
        """The value of the header."""
        return f"{self.version} {self.protocol} {self.host} {self.role}"

    def check(self, header: str | None, where: str = "") -> None:
        """Raise VersionMismatchError unless another process, at ``where``, runs the same Drey as this one."""
        other = heard(header)
        if other is None:
            raise VersionMismatchError(
                f"the process at {where} does not say which Drey it has, so it is an older one; {self}: {_REMEDY}"
            )
        if (other.version, other.protocol) != (self.version, self.protocol):
            raise VersionMismatchError(f"{other}, {self}: {_REMEDY}")


def own_program(role: str, protocol: str) -> Program:
    """Return the program that this process reports."""
    assert _WORD.fullmatch(role), f"{role!r} is no word"
    return Program(__version__, protocol, _word(socket.gethostname()), role)


def heard(header: str | None) -> Program | None:
    """Parse the program that another process reports; None when there is none, or it is unreadable."""
    words = (header or "").split(" ")
    return Program(*words) if len(words) == 4 and all(map(_WORD.fullmatch, words)) else None


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else "unknown"
