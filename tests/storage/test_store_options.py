"""Options of a bucket by the names of obstore and Polars: which there are, what they open, and that none is shown."""

import pytest

from engine.errors import ConfigurationError, PlanError
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import client_of, place_of, settings_of, use_store_settings
from engine.storage.store_options import bucket_settings, library_options
from tests.storage.moto_server import KEYS, REGION


@pytest.fixture(autouse=True)
def forgotten():
    yield
    use_store_settings({})


def use(paths, options, others=None):
    use_store_settings({**(others or {}), **bucket_settings(paths, options, "read_csv")})


@pytest.mark.parametrize(
    "names",
    [
        "endpoint region access_key_id secret_access_key allow_http",
        "endpoint_url region_name key secret allow_http",
        "aws_endpoint_url aws_default_region aws_access_key_id aws_secret_access_key aws_allow_http",
        "AWS_ENDPOINT AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ALLOW_HTTP",
    ],
)
def test_a_bucket_opens_by_the_options_of_a_call_before_those_of_the_process(server, names):
    others = {"storage.s3.endpoint": "http://127.0.0.1:9", "storage.s3.region": "elsewhere"}
    values = [server.endpoint, REGION, KEYS["access_key_id"], KEYS["secret_access_key"], True]
    path = server.put("options/a", b"a")
    use([path, "/tmp/b"], dict(zip(names.split(), values, strict=True)), others)
    assert file_system_of(path).read(path) == b"a"
    assert library_options(path) == {
        "aws_endpoint": server.endpoint,
        "aws_region": REGION,
        "aws_access_key_id": KEYS["access_key_id"],
        "aws_secret_access_key": KEYS["secret_access_key"],
        "allow_http": "true",
    }
    assert settings_of(place_of("s3://another/x"))["storage.s3.region"] == "elsewhere"


def test_other_options_make_another_client_and_the_same_ones_keep_it():
    place = place_of("s3://bucket/a")
    use(["s3://bucket/a"], {"region": "one"})
    first = client_of(place)
    use(["s3://bucket/b"], {"aws_region": "one"})
    assert client_of(place) is first
    use(["s3://bucket/b"], {"region": "two", "session_token": None})
    assert client_of(place) is not first


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("az://container/a", {"azure_storage_account_name": "n", "access_key": "a2V5"}, {"azure_storage_account_name"}),
        ("gs://bucket/a", {"google_application_credentials": "/f.json"}, {"google_service_account"}),
    ],
)
def test_other_vendors_have_their_names(path, options, expected):
    use([path], options)
    assert expected <= set(library_options(path))


@pytest.mark.parametrize(
    ("path", "options", "error", "message"),
    [
        ("s3://b/a", {"regoin": "hush"}, ConfigurationError, "has no 'regoin' for s3; it takes endpoint, region,"),
        ("s3://b/a", {"region": 5}, ConfigurationError, r"storage_options\['region'\] is a text, not of int"),
        ("s3://b/a", {"allow_http": "hush"}, ConfigurationError, r"\['allow_http'\] is True or False"),
        ("s3://b/a", "hush", ConfigurationError, "is a dict of names and values"),
        ("/tmp/a", {"region": "hush"}, PlanError, "is for paths with a host or a bucket, such as"),
    ],
)
def test_what_is_wrong_is_told_without_a_value(path, options, error, message):
    with pytest.raises(error, match=message) as caught:
        use([path], options)
    assert "hush" not in str(caught.value)
