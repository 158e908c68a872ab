"""A fingerprint differs where a message does, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from enum import Enum

import msgspec
import pytest

from engine.rpc.fingerprint import fingerprint, travelling
from tests.tidy.imports import ROOT


class Kind(Enum):
    ONE = 1


class Inner(msgspec.Struct, frozen=True):
    value: int


class Message(msgspec.Struct, frozen=True):
    """The one that the others differ from."""

    inner: tuple[Inner, ...]
    kinds: dict[str, Kind | None] = {}


def other(**changed):
    """Return the fingerprint of the same message with other parts."""
    inner = msgspec.defstruct("Inner", changed.get("inner", [("value", "int")]), module=__name__)
    kind = Enum("Kind", changed.get("kinds", {"ONE": 1}), module=__name__)
    fields = changed.get("fields", [("inner", "tuple[Inner, ...]"), ("kinds", "dict[str, Kind | None]", {})])
    options = {"frozen": True, **changed.get("options", {})}
    message = msgspec.defstruct(changed.get("name", "Message"), fields, module=__name__, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "Inner", inner)
        patch.setitem(globals(), "Kind", kind)
        return fingerprint([message])


def test_the_same_message_has_the_same_fingerprint():
    assert travelling([Message]) == {Message, Inner, Kind}
    assert other() == fingerprint([Message])


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "Massage"},
        {"inner": [("value", "str")]},
        {"inner": [("number", "int")]},
        {"inner": [("value", "int", 0)]},
        {"inner": [("value", "int"), ("more", "int", 0)]},
        {"kinds": {"ONE": 2}},
        {"kinds": {"ONE": 1, "TWO": 2}},
        {"fields": [("kinds", "dict[str, Kind | None]"), ("inner", "tuple[Inner, ...]")]},
        {"options": {"tag": "message"}},
        {"options": {"array_like": True}},
        {"options": {"rename": "camel"}, "fields": [("in_ner", "tuple[Inner, ...]"), ("kinds", "Kind")]},
    ],
    ids=str,
)
def test_another_message_has_another_fingerprint(changed):
    assert other(**changed) != fingerprint([Message])


def test_processes_of_the_same_sources_agree():
    script = "from engine.gateways.protocol import protocol; print(protocol())"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(found) == 1 and len(found.pop().strip().partition(":")[2]) == 8
