"""The client of a bucket: obstore's, made once for each and its settings; its errors as OSError.

    use_store_settings({"storage.s3.endpoint": "http://localhost:9000"})   settings of this thread, by key
    with settings_of_job(job, settings): ...       in a thread of the job, with in_job(job): ...
    with using_settings(settings): ...             in a thread that works for one with current_settings() = settings
    place = place_of("s3://bucket/folder/a.csv")   ─► StorePlace(root, key)
    client_of(place)                               ─► obstore's client; PlanError where obstore is missing
    with told(path): ...                           an error of the client is an OSError that names the path
    asked(path, work)                              the same, and what may be repeated is where an answer is cut off

What a setting does not say is the client's own chain: environment variables (AWS_*, GOOGLE_*, AZURE_*), web identity,
the roles of a container, a pod or a machine. A plan has paths alone: every process of a cluster uses its own settings.

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import contextlib
import importlib
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from engine.errors import PlanError
from engine.storage.aws_profiles import profile_of
from engine.storage.store_counters import note
from engine.storage.store_errors import explained

T = TypeVar("T")

#: the family of each scheme, which is the word in the keys of its settings
FAMILIES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "http": "http",
    "https": "http",
}
#: arguments of the client by key of a setting, behind ``storage.<family>.``
ARGUMENTS: Final = {
    "s3": {
        "endpoint": "endpoint",
        "region": "region",
        "access-key-id": "access_key_id",
        "secret-access-key": "secret_access_key",
        "session-token": "session_token",
        "profile": "profile",
        "anonymous": "skip_signature",
        "ca-file": "root_certificate",
    },
    "gcs": {
        "endpoint": "base_url",
        "service-account-file": "service_account",
        "anonymous": "skip_signature",
        "ca-file": "root_certificate",
    },
    "azure": {
        "endpoint": "endpoint",
        "account-name": "account_name",
        "account-key": "account_key",
        "sas-token": "sas_key",
        "anonymous": "skip_signature",
        "ca-file": "root_certificate",
    },
    "http": {"ca-file": "root_certificate"},
}
#: keys of settings that are not passed to the client as they are
_NO_ARGUMENTS: Final = frozenset({"profile", "ca-file"})
#: requests are repeated so often, and so long, with jitter
_RETRIES: Final = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_TIMEOUT: Final = timedelta(seconds=60)
#: answers that are cut off, which the client does not ask for again: tries, first pause in seconds, words of its error
_TRIES: Final = 5
_PAUSE_S: Final = 0.1
_CUT: Final = "kind: Interrupted"


class CutAnswerError(OSError):
    """An answer ended before it was whole: what was asked may be done."""


class StorePlace(NamedTuple):
    """An object, or a prefix of several, in a bucket."""

    #: scheme and bucket, without a slash at the end
    root: str
    #: the key without slashes around it
    key: str

    @property
    def family(self) -> str:
        """The word in the keys of its settings."""
        return FAMILIES[self.root.partition("://")[0].lower()]

    def path_of(self, key: str) -> str:
        """Return the path of a key in the same bucket."""
        return f"{self.root}/{key}" if key else self.root


def place_of(path: str) -> StorePlace:
    """Return bucket and key of a path; PlanError where there is no bucket, or secrets are in the path."""
    scheme, _, rest = path.partition("://")
    bucket, _, key = rest.partition("/")
    if not bucket:
        raise PlanError(f"{path!r}: a bucket is missing; write {scheme}://bucket/key")
    if "@" in bucket and FAMILIES[scheme.lower()] != "azure":
        hidden = f"{scheme}://{bucket.rpartition('@')[2]}/{key}"
        raise PlanError(f"{hidden}: a user and a password do not belong into a path, which plans and logs show")
    return StorePlace(f"{scheme}://{bucket}", key.strip("/"))


#: facts about a store: it refuses a put whose condition does not hold; it deletes one by one
HEEDS_CONDITIONS: Final = "heeds conditions"
ONE_BY_ONE: Final = "one by one"
#: clients that are kept
_CLIENTS_MAX: Final = 64

_lock: Final = threading.Lock()
#: settings of threads that have none of their own; guarded by: _lock
_settings: dict[str, str] = {}
#: settings of jobs that run in this process, by job; guarded by: _lock
_settings_of_jobs: dict[str, dict[str, str]] = {}
#: clients by bucket and settings, the latest last; guarded by: _lock
_clients: dict[Hashable, Any] = {}
#: facts by bucket and settings; guarded by: _lock
_facts: dict[Hashable, set[str]] = {}


class _Scope(threading.local):
    """The settings of a thread; None: those of the process."""

    settings: dict[str, str] | None = None


_scope: Final = _Scope()


def use_store_settings(settings: Mapping[str, str]) -> None:
    """Take the settings of this thread by key, ``storage.s3.region`` and so on, and of threads that have none."""
    found = _scope.settings = _of_stores(settings)
    with _lock:
        if found != _settings:
            _settings.clear()
            _settings.update(found)


@contextlib.contextmanager
def settings_of_job(job_id: str, settings: Mapping[str, str]) -> Iterator[None]:
    """Keep the settings of a job that runs in this process, for its threads (``in_job``), until the end of the block.

    Jobs of two environments run in the same threads here, each with its own credentials.
    """
    with _lock:
        _settings_of_jobs[job_id] = _of_stores(settings)
    try:
        yield
    finally:
        with _lock:
            del _settings_of_jobs[job_id]


def in_job(job_id: str) -> contextlib.AbstractContextManager[None]:
    """Return a block in which this thread uses the settings of a job, if it has any here."""
    with _lock:
        found = _settings_of_jobs.get(job_id)
    return using_settings(_scope.settings if found is None else found)


def current_settings() -> dict[str, str] | None:
    """Return the settings of this thread; None: those of the process."""
    return _scope.settings


class _Using:
    """A block in which the thread that enters it uses some settings."""

    __slots__ = ("_before", "_settings")

    def __init__(self, settings: dict[str, str] | None) -> None:
        self._settings = settings

    def __enter__(self) -> None:
        self._before, _scope.settings = _scope.settings, self._settings

    def __exit__(self, *_: object) -> None:
        _scope.settings = self._before


def using_settings(settings: dict[str, str] | None) -> contextlib.AbstractContextManager[None]:
    """Use the settings of another thread in this one, until the end of the block."""
    return _Using(settings)


def _of_stores(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: settings[key] for key in settings if key.startswith("storage.")}


def bucket_key(root: str, key: str) -> str:
    """Return the key of a setting that is of one bucket: "storage.[s3://bucket]s3.region"."""
    return f"storage.[{root}]{key.removeprefix('storage.')}"


def settings_of(place: StorePlace) -> dict[str, str]:
    """Return the settings that open a bucket, by key, those of the bucket before others; with secrets."""
    own, known = bucket_key(place.root, ""), _scope.settings
    if known is None:
        with _lock:
            known = dict(_settings)
    found = {f"storage.{key.removeprefix(own)}": text for key, text in known.items() if key.startswith(own)}
    return {**{key: text for key, text in known.items() if "[" not in key}, **found}


def client_of(place: StorePlace) -> Any:
    """Return the client of a bucket."""
    settings = settings_of(place)
    key = _key_of(place, settings)
    facts = facts_of(place)
    with _lock:
        key = (key, ONE_BY_ONE in facts)
        client = _clients.pop(key, None)
        if client is None:
            client = _new_client(place, settings, deletes_one_by_one=ONE_BY_ONE in facts)
        _clients[key] = client
        while len(_clients) > _CLIENTS_MAX:
            del _clients[next(iter(_clients))]
        return client


def facts_of(place: StorePlace) -> set[str]:
    """Return the facts that this process knows of a store, to look into and to add to."""
    key = _key_of(place, settings_of(place))
    with _lock:
        return _facts.setdefault(key, set())


def _key_of(place: StorePlace, settings: Mapping[str, str]) -> Hashable:
    return place.root, frozenset(settings.items())


def client_library(path: str) -> Any:
    """Return obstore, loaded when a path needs it; PlanError where it is missing."""
    try:
        return importlib.import_module("obstore")
    except ImportError:
        raise PlanError(
            f"{path}: object stores need the package obstore; install it in this environment, and on all hosts of a"
            " cluster: pip install 'drey-engine[stores]'"
        ) from None


def _new_client(place: StorePlace, settings: Mapping[str, str], *, deletes_one_by_one: bool) -> Any:
    store = client_library(place.root).store
    family = place.family
    before = f"storage.{family}."
    arguments: dict[str, Any] = {
        argument: settings[before + key]
        for key, argument in ARGUMENTS[family].items()
        if before + key in settings and key not in _NO_ARGUMENTS
    }
    if "skip_signature" in arguments:
        arguments["skip_signature"] = arguments["skip_signature"] == "true"
    profile = profile_of(settings) if family == "s3" else None
    if profile is not None:
        arguments["credential_provider"] = profile.credentials()
        found = {"region": profile.region, "endpoint": profile.endpoint}
        arguments = {**{name: text for name, text in found.items() if text}, **arguments}
    if not arguments.get("endpoint", "http://").startswith(("http://", "https://")):
        raise PlanError(f"{before}endpoint is a URL: it begins with https://, or with http:// where there is no TLS")
    is_plain = family == "http" or settings.get(f"{before}allow-http") == "true"
    client: dict[str, Any] = {
        "timeout": _TIMEOUT,
        "allow_http": is_plain,
        **_certificates(f"{before}ca-file", settings),
    }
    common = {"client_options": client, "retry_config": _RETRIES}
    bucket = place.root.partition("://")[2]
    try:
        if family == "s3":
            return store.S3Store(bucket, disable_bulk_delete=deletes_one_by_one, **arguments, **common)
        if family == "gcs":
            return store.GCSStore(bucket, **arguments, **common)
        if family == "azure":
            container, _, host = bucket.partition("@")
            if host and "account_name" not in arguments:
                arguments["account_name"] = host.partition(".")[0]
            return store.AzureStore(container, **arguments, **common)
        return store.HTTPStore.from_url(place.root, **common)
    except Exception as error:
        # Its text may have values of settings.
        raise PlanError(
            f"{place.root}: the client of the store cannot be made of its settings ({type(error).__name__}); look at"
            f" {before}* in the configuration and at the variables of its credentials"
        ) from None


def _certificates(key: str, settings: Mapping[str, str]) -> dict[str, bytes]:
    """Return the certificates that a client trusts beside those of the machine."""
    if key not in settings:
        return {}
    try:
        content = Path(settings[key]).read_bytes()
    except OSError as error:
        raise PlanError(f"{key}: {settings[key]} cannot be read: {error.strerror or error}") from None
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise PlanError(f"{key}: {settings[key]} has no certificate in PEM, which begins with -----BEGIN CERTIFICATE")
    return {"root_certificate": content}


@contextlib.contextmanager
def told(path: str, requests: int = 1) -> Iterator[None]:
    """Raise an error of a client as OSError: what is wrong, the path, what to do; never a secret. Counts requests."""
    if requests:
        note(place_of(path).root, requests=requests)
    try:
        yield
    except Exception as error:
        is_missing = isinstance(error, FileNotFoundError) and error.errno is None
        if not (type(error).__module__.startswith("obstore") or is_missing):
            raise
        text = str(error)
        number, message = explained(type(error).__name__, text, place_of(path).family)
        raise (CutAnswerError if _CUT in text else OSError)(number, message, path) from None


def asked(path: str, work: Callable[[], T]) -> T:
    """Return the answer to a request that may be repeated, and is so where the answer is cut off. Raises OSError."""
    for attempt in range(_TRIES):
        try:
            with told(path):
                return work()
        except CutAnswerError:
            if attempt == _TRIES - 1:
                raise
            time.sleep(random.SystemRandom().uniform(0, _PAUSE_S * 2**attempt))
    raise AssertionError("the last try returns or raises")
