"""Program: which Drey a process runs, said by both sides of every conversation and compared before anything else.

    own_program("TaskManager", protocol) ─► header ─► the other side: check(header, where it comes from)

    0.2.0 1-2:9f31c2aa tm-7 TaskManager   header: version, protocol, host, role; each a word

The protocol is the oldest and the newest form of messages that a program knows (``engine.versions``), and behind a
colon a fingerprint of its messages (``engine.gateways.protocol``). Two programs understand each other when there is a
form that both know: the older one ignores what the newer one adds. Where the newest form is the same one, the messages
have to be the same too: else one of the two is no release. A protocol without numbers is one that has to be the same,
between processes of one installation. A program that reports nothing has a version from before there was anything to
say. Text of unproved peers reaches logs and pages: other characters than those of names make it unreadable.

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
_FORMS = re.compile(r"(\d{1,9})-(\d{1,9}):.+")
_REMEDY = "install the same version on all machines, and start again what has another one"
_STEPS = "versions so far apart do not work together: upgrade by way of one between them, or stop the cluster and {}"


class Program(msgspec.Struct, frozen=True):
    """The Drey of one process."""

    version: str = ""
    #: oldest and newest form of messages that it knows, and their fingerprint
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
        """Raise VersionMismatchError unless another process, at ``where``, has a Drey that this one understands."""
        other = heard(header)
        if other is None:
            raise VersionMismatchError(
                f"the process at {where} does not say which Drey it has, so it is an older one; {self}: {_REMEDY}"
            )
        if other.protocol == self.protocol and (self._forms or other.version == self.version):
            return
        ours, theirs = self._forms, other._forms
        if ours and theirs and ours[1] != theirs[1]:
            if min(ours[1], theirs[1]) >= max(ours[0], theirs[0]):
                return
            raise VersionMismatchError(f"{other}, {self}: {_STEPS.format(_REMEDY)}")
        raise VersionMismatchError(f"{other}, {self}: {_REMEDY}")

    @property
    def _forms(self) -> tuple[int, int] | None:
        """The oldest and the newest form of messages; None where they have no numbers."""
        found = _FORMS.fullmatch(self.protocol)
        return None if found is None else (int(found[1]), int(found[2]))


def own_program(role: str, protocol: str) -> Program:
    """Return the program that this process reports."""
    assert _WORD.fullmatch(role), f"{role!r} is no word"
    return Program(__version__, protocol, _word(socket.gethostname()), role)


def header_of(program: Program | None) -> str:
    """Return the header that reports a program; "" of a process that reports none."""
    return "" if program is None else program.header


def heard(header: str | None) -> Program | None:
    """Parse the program that another process reports; None when there is none, or it is unreadable."""
    words = (header or "").split(" ")
    return Program(*words) if len(words) == 4 and all(map(_WORD.fullmatch, words)) else None


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else "unknown"
