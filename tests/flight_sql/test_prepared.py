"""Prepared statements: their owner's alone, bounded, and gone when they are not used."""

import pytest

from engine.clock import ManualClock
from engine.errors import PlanError
from engine.flight_sql import prepared
from engine.flight_sql.prepared import PreparedStatements


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def statements(clock):
    return PreparedStatements(10.0, 3, clock)


def test_a_statement_is_its_owners_until_it_is_closed(statements):
    handle = statements.prepare("SELECT 1", "ada")
    assert statements.of(handle, "ada").text == "SELECT 1"
    for owner in ("bob", ""):
        with pytest.raises(PlanError, match="is not there"):
            statements.of(handle, owner)
        statements.close(handle, owner)
    statements.bind(handle, "ada", b"rows")
    assert statements.of(handle, "ada").parameters == b"rows"
    statements.close(handle, "ada")
    statements.close(handle, "ada")
    with pytest.raises(PlanError, match="it was closed"):
        statements.of(handle, "ada")


def test_what_is_not_used_is_forgotten(statements, clock):
    old, used = statements.prepare("SELECT 1", "ada"), statements.prepare("SELECT 2", "ada")
    clock.advance(9)
    statements.of(used, "ada")
    clock.advance(1)
    with pytest.raises(PlanError, match="not used for 10 s"):
        statements.of(old, "ada")
    assert statements.of(used, "ada").text == "SELECT 2"


def test_there_are_not_too_many_and_none_is_too_large(statements, clock, monkeypatch):
    handles = [statements.prepare(f"SELECT {number}", "ada") for number in range(3)]
    clock.advance(10)
    assert statements.prepare("SELECT 4", "bob") not in handles
    monkeypatch.setattr(prepared, "BYTES_MAX", 10)
    with pytest.raises(PlanError, match="11 bytes, at most 10"):
        statements.bind(handles[0], "ada", b"x" * 11)


def test_a_session_with_many_statements_takes_no_place_of_another(statements, monkeypatch):
    first = statements.prepare("SELECT 1", "ada")
    many = [statements.prepare(f"SELECT {number}", "bob") for number in range(5)]
    assert statements.of(first, "ada").text == "SELECT 1"
    with pytest.raises(PlanError, match="too many that are open"):
        statements.of(many[0], "bob")
    assert statements.of(many[-1], "bob").text == "SELECT 4"
    monkeypatch.setattr(prepared, "ALL_BYTES_MAX", 100)
    statements.bind(first, "ada", b"x" * 60)
    statements.bind(many[-1], "bob", b"y" * 60)
    with pytest.raises(PlanError, match="is not there"):
        statements.of(first, "ada")
    assert statements.of(many[-1], "bob").parameters == b"y" * 60
    monkeypatch.setattr(prepared, "BYTES_MAX", 10)
    with pytest.raises(PlanError, match="11 characters, at most 10"):
        statements.prepare("SELECT 1234", "ada")
