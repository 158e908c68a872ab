"""Profiles of ~/.aws: which of them counts, what the client gets of it, and what is told."""

import os
import sys

import pytest

from engine.errors import PlanError
from engine.storage.aws_profiles import profile_of
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from engine.storage.store_options import bucket_settings, library_options
from tests.storage.moto_server import KEYS, REGION

CREDENTIALS = """
[default]
aws_access_key_id = default-id
aws_secret_access_key = default-secret

[work]
aws_access_key_id = {access_key_id}
aws_secret_access_key = {secret_access_key}
aws_session_token = of-work
"""
CONFIG = """
[default]
region = far
[profile work]
region = {region}
endpoint_url = {endpoint}
[profile by-role]
role_arn = arn:aws:iam::1:role/x
source_profile = work
[profile empty]
region = near
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch, server):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(CREDENTIALS.format(**KEYS))
    (tmp_path / "config").write_text(CONFIG.format(region=REGION, endpoint=server.endpoint))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    yield tmp_path
    use_store_settings({})


@pytest.mark.parametrize(
    ("settings", "variables", "expected"),
    [
        ({}, {}, "default"),
        ({}, {"AWS_PROFILE": "work"}, "work"),
        ({"profile": "work"}, {"AWS_PROFILE": "default"}, "work"),
        ({"profile": "work"}, {"AWS_ACCESS_KEY_ID": "x"}, "work"),
        ({}, {"AWS_ACCESS_KEY_ID": "x", "AWS_PROFILE": "work"}, None),
        ({"access-key-id": "x", "profile": "work"}, {}, None),
        ({"anonymous": "true"}, {"AWS_PROFILE": "work"}, None),
        ({}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, None),
        ({}, {"AWS_PROFILE": "by-role"}, "by-role"),
    ],
)
def test_the_order_of_credentials_is_that_of_amazon(monkeypatch, settings, variables, expected):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    found = profile_of({f"storage.s3.{key}": text for key, text in settings.items()})
    assert (found and found.name) == expected


@pytest.mark.parametrize("way", ["setting", "option", "variable"])
def test_a_bucket_is_read_with_the_keys_the_region_and_the_endpoint_of_a_profile(server, monkeypatch, way):
    path = server.put("profiles/a", b"a")
    settings = {"storage.s3.allow-http": "true"}
    if way == "setting":
        settings["storage.s3.profile"] = "work"
    elif way == "option":
        settings |= bucket_settings([path], {"profile": "work"}, "read_csv")
    else:
        monkeypatch.setenv("AWS_PROFILE", "work")
    use_store_settings(settings)
    assert file_system_of(path).read(path) == b"a"
    assert library_options(path) == {
        "aws_endpoint": server.endpoint,
        "aws_region": REGION,
        "aws_access_key_id": KEYS["access_key_id"],
        "aws_secret_access_key": KEYS["secret_access_key"],
        "aws_session_token": "of-work",
        "allow_http": "true",
    }


def test_keys_that_change_in_the_file_are_read_again(files):
    keys = profile_of({"storage.s3.profile": "work"}).credentials()
    before = keys()
    (files / "credentials").write_text("[work]\naws_access_key_id = new\naws_secret_access_key = newer\n")
    after = keys()
    assert (before["access_key_id"], after["access_key_id"], after["token"]) == (KEYS["access_key_id"], "new", None)


def test_what_is_wrong_with_a_profile_is_told_without_a_secret(files, monkeypatch):
    with pytest.raises(PlanError, match=r"the profile 'wrok' is not there in .*credentials or .*config"):
        profile_of({"storage.s3.profile": "wrok"})
    with pytest.raises(PlanError, match="the profile 'empty' has no credentials in"):
        profile_of({"storage.s3.profile": "empty"})
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(PlanError, match=r"the package boto3 gets them .* pip install boto3"):
        profile_of({"storage.s3.profile": "by-role"}).credentials()
    (files / "credentials").write_text("hush = 1\n[work]\n")
    with pytest.raises(PlanError, match="cannot be read as a file of profiles") as caught:
        profile_of({"storage.s3.profile": "work"})
    assert "hush" not in str(caught.value)
