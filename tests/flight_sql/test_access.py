"""Tokens: the right one is let in, in any form that clients send; wrong, changed and old ones are not."""

import base64

import pyarrow.flight as flight
import pytest

from engine.clock import ManualClock
from engine.flight_sql.access import Access, AccessOfCalls, Caller, addresses_text
from engine.rpc.principal import Role
from engine.rpc.user_tokens import UserTokens, add_user, remove_user

TOKEN = b"correct-horse-battery"


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def clock():
    return ManualClock(1000.0)


@pytest.fixture
def access(clock):
    return Access(TOKEN, 60.0, clock)


def test_the_token_is_let_in_as_password_and_as_bearer(access):
    assert access.caller_of(basic("ada", TOKEN.decode())) == Caller("user ada")
    assert access.caller_of(basic("ada", TOKEN.decode()).rstrip("=")) == Caller("user ada")
    assert access.caller_of(f"bearer {TOKEN.decode()}") == Caller("token")


def test_a_session_is_good_for_its_time(access, clock):
    session = access.new_session()
    owner, why, *_ = access.caller_of(f"Bearer {session}")
    assert owner.startswith("session ") and not why
    assert access.caller_of(f"Bearer {access.new_session()}")[0] != owner
    assert Access(TOKEN, 60.0, clock).caller_of(f"Bearer {session}")[0] == owner
    clock.advance(60)
    assert access.caller_of(f"Bearer {session}") == Caller("", "the session has expired")


def test_what_is_wrong_is_refused(access, clock):
    session = access.new_session()
    end, rest = session.split(".", 1)
    later = f"{int(end) + 10_000_000}.{rest}"
    others = Access(b"another-token-of-others", 60.0, clock).new_session()
    wrong = [later, others, session[:-1], session + "0", "", "..", "x.y.z", "1.2.\udcff", TOKEN.decode() + "x"]
    for value in wrong:
        assert access.caller_of(f"Bearer {value}")[0] == "", value
    for header in (
        "",
        "Basic",
        "Basic !!!",
        basic("ada", "wrong"),
        basic("", ""),
        f"Digest {TOKEN.decode()}",
        "x" * 5000,
    ):
        owner, why, *_ = access.caller_of(header)
        assert not owner and why, header


def test_secrets_are_in_no_text(access):
    calls = AccessOfCalls(access)
    info = type("Info", (), {"method": flight.FlightMethod.DO_GET})()
    with pytest.raises(flight.FlightUnauthenticatedError) as caught:
        calls.start_call(info, {"authorization": ["Bearer not-the-one"]})
    assert "not-the-one" not in str(caught.value) and TOKEN.decode() not in f"{caught.value}{access!r}"


def test_a_login_gets_a_session_and_an_open_server_asks_for_nothing(access, clock):
    info = type("Info", (), {"method": flight.FlightMethod.HANDSHAKE})()
    call = AccessOfCalls(access).start_call(info, {"authorization": [basic("ada", TOKEN.decode())]})
    session = call.sending_headers()["authorization"]
    assert access.caller_of(session)[0].startswith("session ")
    assert AccessOfCalls(access).start_call(info, {"authorization": [session]}).sending_headers() == {}
    everybody = Access(None, 60.0, clock)
    assert everybody.is_open and not access.is_open
    assert everybody.caller_of("") == Caller("anonymous")
    assert AccessOfCalls(everybody).start_call(info, {}).sending_headers() == {}


def test_tokens_of_users_have_their_roles_and_their_sessions_end_with_them(tmp_path, clock):
    path = tmp_path / "users.tokens"
    tokens = {name: add_user(path, name, role) for name, role in (("ada.b", Role.READ), ("bob", Role.SUBMIT))}
    access = Access(TOKEN, 60.0, clock, UserTokens(path))
    for name, may_change in (("ada.b", False), ("bob", True)):
        for header in (f"Bearer {tokens[name]}", basic("anybody", tokens[name])):
            caller = access.caller_of(header)
            assert (caller.owner, caller.may_change) == (f"token of {name}", may_change)
        session = access.caller_of(f"Bearer {access.new_session(caller.user)}")
        assert session.owner.startswith("session ") and session.may_change is may_change
    read = access.new_session(access.caller_of(f"Bearer {tokens['ada.b']}").user)
    end, number, rest = read.split(".", 2)
    signature = rest.rpartition(".")[2]
    for forged in (f"{end}.{number}..{signature}", f"{end}.{number}.bob.{signature}", f"{end}.{number}.{signature}"):
        assert access.caller_of(f"Bearer {forged}") == Caller("", "the token is wrong"), forged
    add_user(path, "ada.b", Role.READ)
    assert not access.caller_of(f"Bearer {read}").owner, "another token ends the sessions of the one before"
    remove_user(path, "bob")
    assert not access.caller_of(f"Bearer {tokens['bob']}").owner


def test_a_refusal_has_the_addresses_that_it_may_be_from():
    assert addresses_text([]) == "an unknown address"
    assert addresses_text(["10.0.0.7", "10.0.0.7"]) == "10.0.0.7"
    assert addresses_text(["b", "a"]) == "one of a, b"
    assert addresses_text(list("fedcba")) == "one of a, b, c, d and 2 more"
