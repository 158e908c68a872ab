"""Tokens: the right one is let in, in any form that clients send; wrong, changed and old ones are not."""

import base64

import pyarrow.flight as flight
import pytest

from engine.clock import ManualClock
from engine.flight_sql.access import Access, AccessOfCalls

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
    assert access.owner_of(basic("ada", TOKEN.decode())) == ("user ada", "")
    assert access.owner_of(basic("ada", TOKEN.decode()).rstrip("=")) == ("user ada", "")
    assert access.owner_of(f"bearer {TOKEN.decode()}") == ("token", "")


def test_a_session_is_good_for_its_time(access, clock):
    session = access.new_session()
    owner, why = access.owner_of(f"Bearer {session}")
    assert owner.startswith("session ") and not why
    assert access.owner_of(f"Bearer {access.new_session()}")[0] != owner
    assert Access(TOKEN, 60.0, clock).owner_of(f"Bearer {session}")[0] == owner
    clock.advance(60)
    assert access.owner_of(f"Bearer {session}") == ("", "the session has expired")


def test_what_is_wrong_is_refused(access, clock):
    session = access.new_session()
    end, number, signature = session.split(".")
    later = f"{int(end) + 10_000_000}.{number}.{signature}"
    others = Access(b"another-token-of-others", 60.0, clock).new_session()
    wrong = [later, others, session[:-1], session + "0", "", "..", "x.y.z", "1.2.\udcff", TOKEN.decode() + "x"]
    for value in wrong:
        assert access.owner_of(f"Bearer {value}")[0] == "", value
    for header in (
        "",
        "Basic",
        "Basic !!!",
        basic("ada", "wrong"),
        basic("", ""),
        f"Digest {TOKEN.decode()}",
        "x" * 5000,
    ):
        owner, why = access.owner_of(header)
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
    assert access.owner_of(session)[0].startswith("session ")
    assert AccessOfCalls(access).start_call(info, {"authorization": [session]}).sending_headers() == {}
    everybody = Access(None, 60.0, clock)
    assert everybody.is_open and not access.is_open
    assert everybody.owner_of("") == ("anonymous", "")
    assert AccessOfCalls(everybody).start_call(info, {}).sending_headers() == {}
