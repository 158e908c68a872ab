"""Profiles of ``~/.aws``, which the client of S3 does not read: keys and region by the name of a profile.

    profile = profile_of(settings)     Profile, None where nothing names one or other credentials come first
    profile.region, profile.endpoint   texts, "" where it has none
    profile.credentials()              ─► keys for the client, which asks again when they may have changed

    order: storage.s3.access-key-id, storage.s3.profile, AWS_ACCESS_KEY_ID, AWS_PROFILE, roles, the profile "default"

Keys that are in the files are read by this module. A profile that signs in, takes a role or runs a program for its keys
needs boto3, which does all of that.

Source: the format of the files is that of Amazon's command line.
Held by: tests/storage/test_aws_profiles.py
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from engine.errors import PlanError

#: time after which keys in a file are read again
_KEPT: Final = timedelta(minutes=5)
#: words of a profile whose keys are not in the files
_BY_BOTO3: Final = frozenset({"role_arn", "credential_process", "sso_session", "sso_start_url", "login_session"})
#: variables by which a process gets its credentials from elsewhere
_OTHERS: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


class Profile(NamedTuple):
    """A profile: its name and what the files say of it."""

    name: str
    texts: Mapping[str, str]

    @property
    def region(self) -> str:
        """The region."""
        return self.texts.get("region", "")

    @property
    def endpoint(self) -> str:
        """The URL of a store that is not Amazon's."""
        return self.texts.get("endpoint_url", "")

    def credentials(self) -> Callable[[], dict[str, Any]]:
        """Return the function that gives the client its keys."""
        if "aws_access_key_id" in self.texts:
            return self._keys
        try:
            boto3 = importlib.import_module("boto3")
            provider = importlib.import_module("obstore.auth.boto3").Boto3CredentialProvider
        except ImportError:
            raise PlanError(
                f"the profile {self.name!r} in ~/.aws has no keys of its own; the package boto3 gets them where they"
                " are: pip install boto3, on all hosts of a cluster"
            ) from None
        found: Callable[[], dict[str, Any]] = provider(session=boto3.Session(profile_name=self.name))
        return found

    def _keys(self) -> dict[str, Any]:
        texts = _texts_of(self.name)
        return {
            "access_key_id": texts.get("aws_access_key_id", ""),
            "secret_access_key": texts.get("aws_secret_access_key", ""),
            "token": texts.get("aws_session_token") or None,
            "expires_at": datetime.now(UTC) + _KEPT,
        }


def profile_of(settings: Mapping[str, str]) -> Profile | None:
    """Return the profile that settings or variables name, or the one that is called default. Raises PlanError."""
    if "storage.s3.access-key-id" in settings or settings.get("storage.s3.anonymous") == "true":
        return None
    named = settings.get("storage.s3.profile")
    if named is None and os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    named = named or os.environ.get("AWS_PROFILE")
    name = named or ("" if any(os.environ.get(other) for other in _OTHERS) else "default")
    texts = _texts_of(name) if name else {}
    if "aws_access_key_id" in texts or _BY_BOTO3 & texts.keys():
        return Profile(name, texts)
    if named:
        what = "has no credentials" if texts else "is not there"
        raise PlanError(f"the profile {named!r} {what} in {_file('credentials')} or {_file('config')}")
    return None


def _file(name: str) -> Path:
    variable = {"credentials": "AWS_SHARED_CREDENTIALS_FILE", "config": "AWS_CONFIG_FILE"}[name]
    return Path(os.environ.get(variable) or Path("~/.aws") / name).expanduser()


def _texts_of(name: str) -> dict[str, str]:
    import configparser

    found: dict[str, str] = {}
    for file, section in (("config", f"profile {name}" if name != "default" else name), ("credentials", name)):
        parser = configparser.RawConfigParser()
        try:
            parser.read(_file(file), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            # Its text may have lines of the file.
            raise PlanError(f"{_file(file)} cannot be read as a file of profiles ({type(error).__name__})") from None
        except OSError as error:
            raise PlanError(f"{_file(file)} cannot be read: {error.strerror}") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found
