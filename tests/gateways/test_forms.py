"""What a release says and keeps is understood by the next one: no field of it is removed, retyped or needed since."""

from __future__ import annotations

import base64
import enum
import json
import re

import msgspec
import pytest

from engine.errors import VersionMismatchError
from engine.gateways.messages import MESSAGE_TYPES
from engine.graph.deployment import TaskDeploymentDescriptor
from engine.graph.exact import Exact
from engine.graph.job_graph import JobGraph
from engine.graph.planned_step import PlannedStep
from engine.graph.run_time_decision import Change
from engine.rpc.fingerprint import fingerprint, travelling
from engine.versions import FORMS, PROTOCOL, Form
from tests.gateways import golden
from tests.tidy.imports import ROOT

KNOWN = range(PROTOCOL.oldest, PROTOCOL.newest + 1)
#: masks and values of the first bytes of msgpack
ARRAY, MAP = ((0xF0, 0x90), (0xFE, 0xDC)), ((0xF0, 0x80), (0xFE, 0xDE))
RECORD = "write its golden forms: python -m tests.gateways.golden"


def recorded(number):
    path = golden.FOLDER / f"protocol-{number}.json"
    assert path.is_file(), f"protocol {number} has no golden forms; {RECORD}"
    return json.loads(path.read_text())


def type_named(name, types):
    """Return a type where it is now: a module may change, and the name of a class, which travels, may not."""
    found = types.get(name) or [kind for key, kind in types.items() if key.endswith(f".{name.rpartition('.')[2]}")]
    return found if isinstance(found, type) else found[0] if len(found) == 1 else None


def fault_of(kind, kept):
    """Return what keeps a program of today from understanding one of then, or the other way round; None: nothing."""
    if kind is None:
        return "is gone"
    if issubclass(kind, enum.Enum):
        gone = kept["values"].items() - {member.name: member.value for member in kind}.items()
        return f"lacks {sorted(gone)}" if gone else None
    if kind.__struct_config__.tag != kept["tag"]:
        return f"has the tag {kind.__struct_config__.tag}, not {kept['tag']}"
    now = golden.fields_of(kind)
    changed = {name: text for name, text in kept["fields"].items() if now.get(name) != text}
    if changed:
        return f"has lost or retyped {changed}"
    content = base64.b64decode(kept["bytes"])
    try:
        again = msgspec.msgpack.encode(msgspec.msgpack.decode(content, type=kind))
    except msgspec.MsgspecError as error:
        return f"is not read any more: {error}"
    then, now_said = parts_of(content), parts_of(again)
    return None if then.items() <= now_said.items() else f"is read as {now_said}, and was {then}"


def parts_of(content):
    """Return the fields of a struct's bytes: of what is not plain, which has bytes of its own, the names alone."""
    kind = list[msgspec.Raw] if is_any(content, ARRAY) else dict[str, msgspec.Raw]
    parts = msgspec.msgpack.decode(content, type=kind)
    named = parts.items() if isinstance(parts, dict) else enumerate(parts)
    return {name: "..." if is_any(bytes(raw), ARRAY + MAP) else msgspec.msgpack.decode(raw) for name, raw in named}


def is_any(content, kinds):
    return any(content[0] & mask == kind for mask, kind in kinds)


def faults_of(number, types):
    found = {name: fault_of(type_named(name, types), kept) for name, kept in recorded(number)["types"].items()}
    return [f"protocol {number}: {name} {fault}" for name, fault in found.items() if fault]


@pytest.mark.parametrize("number", KNOWN)
def test_what_each_known_protocol_says_is_understood_today(number):
    assert faults_of(number, golden.all_types()) == []


def test_messages_of_a_released_protocol_do_not_change():
    now = recorded(PROTOCOL.newest)
    if now["released"]:
        assert now["messages"] == fingerprint(MESSAGE_TYPES), (
            f"protocol {PROTOCOL.newest} is released: raise its number in engine/versions.py and {RECORD}"
        )


@pytest.mark.parametrize("number", KNOWN)
def test_forms_of_what_processes_read_of_each_other_are_the_same_in_each_known_protocol(number):
    then = recorded(number)["forms"]
    for name in ("rows", "frames", "handle", "journal", "decision"):
        assert then[name] == FORMS[name].newest, f"{name} has a new form: raise PROTOCOL.newest and oldest to it"


def test_numbers_are_those_of_the_bytes():
    pxd = re.search(r"FRAME_VERSION = (\d+)", (ROOT / "engine/transport/frames.pxd").read_text())
    block = re.search(r"BLOCK_VERSION = (\d+)", (ROOT / "engine/iomanager/block_format.pxd").read_text())
    assert (int(pxd[1]), int(block[1])) == (FORMS["frames"].newest, FORMS["spill"].newest)


def test_the_page_of_upgrades_has_the_number_of_each_form():
    page = (ROOT / "docs/pages/operating/upgrade.md").read_text()
    rows = dict(re.findall(r"(?m)^\| (\w+) \| (\d+) \|", page))
    assert rows == {name: str(form.newest) for name, form in FORMS.items()}


def test_a_form_that_is_not_known_is_named_with_what_to_do():
    form = Form("journal", 3, 2)
    form.check(2, "a")
    form.check(3, "a")
    for number, kind in ((4, "newer"), (1, "older")):
        with pytest.raises(
            VersionMismatchError, match=f"/x is a journal of form {number}, written by .*{kind} version"
        ):
            form.check(number, "/x")


# ---- the rule of fields ----


def changed(**fields):
    """Return a message with other fields than ``Told``."""
    described = [(name, *kind) for name, kind in fields.items()]
    return msgspec.defstruct("Told", described, module=__name__, frozen=True, kw_only=True)


class Told(msgspec.Struct, frozen=True):
    number: int
    text: str = ""


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"number": ("int",), "text": ("str", ""), "more": ("int", 0)}, None),
        ({"number": ("int",)}, "lost or retyped"),
        ({"number": ("float",), "text": ("str", "")}, "lost or retyped"),
        ({"number": ("int",), "text": ("str", ""), "more": ("int",)}, "not read any more"),
    ],
)
def test_a_field_may_be_added_with_a_default_and_nothing_else(fields, fault):
    found = fault_of(changed(**fields), golden.golden_of(Told))
    assert found is None if fault is None else fault in found


def test_what_decides_rows_is_exact():
    """An older program must not leave out what it does not know of a plan."""
    deciding = travelling([JobGraph, TaskDeploymentDescriptor, *Change.__args__]) - {PlannedStep}
    tolerant = [
        kind.__name__
        for kind in deciding
        if not issubclass(kind, enum.Enum)
        and kind.__module__ != "engine.ids"
        and not (kind.__struct_config__.forbid_unknown_fields and kind.__struct_config__.omit_defaults)
    ]
    assert tolerant == []


class Kept(Exact, frozen=True):
    size: int
    mode: str = ""


class Newer(Exact, frozen=True):
    size: int
    mode: str = ""
    is_negated: bool = False


def test_a_plan_of_a_newer_program_is_taken_where_it_uses_nothing_new_and_refused_by_name_where_it_does():
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Newer(1, "a")), type=Kept) == Kept(1, "a")
    with pytest.raises(msgspec.ValidationError, match="unknown field `is_negated`"):
        msgspec.msgpack.decode(msgspec.msgpack.encode(Newer(1, "a", is_negated=True)), type=Kept)
