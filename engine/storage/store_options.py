"""Options of a bucket that a call was given (``storage_options=``), by the names that obstore and Polars have.

    bucket_settings(["s3://bucket/a.csv"], {"endpoint_url": ..., "aws_region": ...}, "read_csv")
        ─► {"storage.[s3://bucket]s3.endpoint": ..., ...}      which the configuration takes (add_storage_texts)
    library_options("s3://bucket/a")  ─► {"endpoint": ..., "region": ...}      for libraries that open it themselves

They are the options of the bucket in an Environment, before others of its configuration, until a call gives others.
They are in no plan and no message: a process of a cluster has its own configuration and variables.

Held by: tests/storage/test_store_options.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from engine.errors import ConfigurationError, PlanError
from engine.storage.aws_profiles import profile_of
from engine.storage.fsspec_client import FSSPEC_OPTIONS, FSSPEC_SCHEMES, fsspec_place
from engine.storage.store_client import ARGUMENTS, FAMILIES, StorePlace, bucket_key, place_of, settings_of

StorageOptions: TypeAlias = Mapping[str, Any] | None

#: prefixes of names that say the vendor, by family
_VENDORS: Final = {"s3": ("aws_",), "gcs": ("google_", "gcs_"), "azure": ("azure_storage_", "azure_"), "http": ()}
#: other names of options, without the vendor, by the key of their setting
_NAMES: Final = {
    "endpoint": "endpoint endpoint_url endpoint_url_s3 base_url",
    "region": "region region_name default_region",
    "access-key-id": "access_key_id key",
    "secret-access-key": "secret_access_key secret",
    "session-token": "session_token token",
    "profile": "profile profile_name",
    "service-account-file": "service_account service_account_path application_credentials",
    "account-name": "account_name",
    "account-key": "account_key access_key master_key",
    "sas-token": "sas_token sas_key",
    "anonymous": "skip_signature anon",
    "allow-http": "allow_http",
    "ca-file": "ca_file",
}
#: keys of settings that no library takes as a text
_NO_TEXTS: Final = frozenset({"profile", "ca-file"})
_SWITCHES: Final = frozenset({"anonymous", "allow-http"})


def bucket_settings(paths: Iterable[Any], options: StorageOptions, call: str) -> dict[str, str]:
    """Return options as settings of the buckets of some paths.

    Raises: PlanError, ConfigurationError, without their values.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigurationError(f"{call}: storage_options= is a dict of names and values")
    roots = {place.root: place.family for path in paths if (place := _place(path)) is not None}
    others = [fsspec_place(str(path)) for path in paths if _scheme(path) in FSSPEC_SCHEMES]
    if not roots and not others:
        raise PlanError(f"{call}: storage_options= is for paths with a host or a bucket, such as s3://bucket/key")
    by_fsspec = {bucket_key(place.root, FSSPEC_OPTIONS): _as_json({place.scheme: options}, call) for place in others}
    return by_fsspec | {
        bucket_key(root, key): value
        for root, family in roots.items()
        for key, value in _settings(options, family, call).items()
    }


def _scheme(path: Any) -> str:
    scheme, mark, _ = str(path).partition("://")
    return scheme.lower() if mark else ""


def _place(path: Any) -> StorePlace | None:
    return place_of(str(path)) if _scheme(path) in FAMILIES else None


def _as_json(options: Mapping[str, Mapping[str, Any]], call: str) -> str:
    try:
        return json.dumps({scheme: dict(texts) for scheme, texts in options.items()})
    except (TypeError, ValueError):
        raise ConfigurationError(f"{call}: storage_options= of this path are texts, numbers, True and False") from None


def _settings(options: Mapping[str, Any], family: str, call: str) -> dict[str, str]:
    known = {name: key for key in (*ARGUMENTS[family], *_SWITCHES) for name in _NAMES[key].split()}
    found: dict[str, str] = {}
    for option, value in options.items():
        name = str(option).lower().replace("-", "_")
        for vendor in _VENDORS[family]:
            name = name.removeprefix(vendor)
        if name not in known:
            names = ", ".join(_NAMES[key].split()[0] for key in (*ARGUMENTS[family], "allow-http"))
            raise ConfigurationError(f"{call}: storage_options= has no {option!r} for {family}; it takes {names}")
        key = known[name]
        text = str(value).lower() if key in _SWITCHES else value
        if key in _SWITCHES and text not in ("true", "false"):
            raise ConfigurationError(f"{call}: storage_options[{option!r}] is True or False")
        if text is None:
            continue
        if not isinstance(text, str):
            raise ConfigurationError(f"{call}: storage_options[{option!r}] is a text, not of {type(text).__name__}")
        found[f"storage.{family}.{key}"] = text
    return found


def library_options(path: str) -> dict[str, str]:
    """Return the options of a path's bucket by the names of object_store, for a library that opens it itself."""
    place = place_of(path)
    before = f"storage.{place.family}."
    vendor = next(iter(_VENDORS[place.family]), "")
    found = settings_of(place)
    names = {**ARGUMENTS[place.family], "allow-http": "allow_http"}
    texts = {name: found[before + key] for key, name in names.items() if before + key in found and key not in _NO_TEXTS}
    profile = profile_of(found) if place.family == "s3" else None
    if profile is not None:
        keys = profile.credentials()()
        own = {"region": profile.region, "endpoint": profile.endpoint, "access_key_id": keys["access_key_id"]}
        own |= {"secret_access_key": keys["secret_access_key"], "session_token": keys["token"]}
        texts = {**{name: text for name, text in own.items() if text}, **texts}
    return {f"{'' if name == 'allow_http' else vendor}{name}": text for name, text in texts.items()}
