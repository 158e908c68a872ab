"""What the contract names and this version does not do says so, by name, before anything starts."""

import pyarrow as pa
import pytest

import engine
from engine import Environment, NotYetSupportedError
from tests.integration.conftest import SETTINGS

SCHEMA = pa.schema([("a", pa.int64())])


CALLS = {
    "positional join": lambda data, env: (env.register("a", data), env.sql("SELECT * FROM a POSITIONAL JOIN a AS b")),
    "without analyze": lambda data, _: data.explain(format="json"),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", CALLS)
def test_it_says_not_yet_by_name(environment, name):
    data = environment.from_rows([(1,)], SCHEMA)
    with pytest.raises(NotYetSupportedError) as caught:
        CALLS[name](data, environment)
    text = str(caught.value)
    assert name.lower().rstrip("_") in text.lower()
    assert "not" in text
    assert "yet" in text
    assert len(text.splitlines()) == 1


@pytest.mark.quick
def test_an_unknown_target_is_another_error():
    with pytest.raises(engine.ConfigurationError, match="moon"), Environment(config=SETTINGS, target="moon") as env:
        env.from_rows([(1,)], SCHEMA).collect()


@pytest.mark.quick
def test_not_yet_is_an_engine_error_and_a_not_implemented_error():
    assert issubclass(NotYetSupportedError, engine.EngineError)
    assert issubclass(NotYetSupportedError, NotImplementedError)


@pytest.mark.quick
def test_streaming_is_refused_by_name(environment):
    for name in ("checkpoints", "savepoint", "iterate"):
        assert not hasattr(environment, name)
