"""The client of a bucket: obstore's, made once for each, with the settings of this process; its errors as OSError.

    use_store_settings({"storage.s3.endpoint": "http://localhost:9000"})   settings of this process, by key
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
import errno
import importlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeVar

from engine.errors import PlanError
from engine.storage.store_counters import note

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
        "anonymous": "skip_signature",
    },
    "gcs": {"endpoint": "base_url", "service-account-file": "service_account", "anonymous": "skip_signature"},
    "azure": {
        "endpoint": "endpoint",
        "account-name": "account_name",
        "account-key": "account_key",
        "sas-token": "sas_key",
        "anonymous": "skip_signature",
    },
    "http": {},
}
#: requests are repeated so often, and so long, with jitter
_RETRIES: Final = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_TIMEOUT: Final = timedelta(seconds=60)
#: answers that are cut off, which the client does not ask for again: tries, first pause in seconds, words of its error
_TRIES: Final = 5
_PAUSE_S: Final = 0.1
_CUT: Final = "kind: Interrupted"
#: parts of a store's answer about an error
_CODE: Final = re.compile(r"<Code>([^<]{1,100})</Code>")
_REQUEST: Final = re.compile(r"<RequestId>([^<]{1,100})</RequestId>")
_STATUS: Final = re.compile(r"\b(?:status code:|status:|error:?) (\d{3}\b[A-Za-z ]{0,30})")
#: errors of a client by name, as numbers of the system, and what to do
_KNOWN: Final = {
    "FileNotFoundError": (errno.ENOENT, "there is no such object", ""),
    "NotFoundError": (errno.ENOENT, "there is no such object", ""),
    "PermissionDeniedError": (errno.EACCES, "access is denied", "its credentials may not do this: "),
    "UnauthenticatedError": (errno.EACCES, "access is denied", "its credentials are missing, wrong or too old: "),
    "PreconditionError": (errno.ESTALE, "it was replaced meanwhile", "run the job again"),
    "AlreadyExistsError": (errno.EEXIST, "there is one", ""),
    "InvalidPathError": (errno.EINVAL, "no object can have this key", ""),
    "NotSupportedError": (errno.ENOTSUP, "the store cannot do this", ""),
}


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


_lock: Final = threading.Lock()
#: guarded by: _lock
_settings: dict[str, str] = {}
#: guarded by: _lock
_clients: dict[str, Any] = {}


def use_store_settings(settings: Mapping[str, str]) -> None:
    """Take the settings of this process by key, ``storage.s3.region`` and so on; those before them end."""
    found = {key: settings[key] for key in settings if key.startswith("storage.")}
    with _lock:
        if found != _settings:
            _settings.clear()
            _settings.update(found)
            _clients.clear()


def bucket_key(root: str, key: str) -> str:
    """Return the key of a setting that is of one bucket: "storage.[s3://bucket]s3.region"."""
    return f"storage.[{root}]{key.removeprefix('storage.')}"


def settings_of(place: StorePlace) -> dict[str, str]:
    """Return the settings that open a bucket, by key, those of the bucket before others; with secrets."""
    own = bucket_key(place.root, "")
    found = {f"storage.{key.removeprefix(own)}": text for key, text in _settings.items() if key.startswith(own)}
    return {**{key: text for key, text in _settings.items() if "[" not in key}, **found}


def client_of(place: StorePlace) -> Any:
    """Return the client of a bucket."""
    with _lock:
        client = _clients.get(place.root)
        if client is None:
            client = _clients[place.root] = _new_client(place)
        return client


def client_library(path: str) -> Any:
    """Return obstore, loaded when a path needs it; PlanError where it is missing."""
    try:
        return importlib.import_module("obstore")
    except ImportError:
        raise PlanError(
            f"{path}: object stores need the package obstore; install it in this environment, and on all hosts of a"
            " cluster: pip install 'drey-engine[stores]'"
        ) from None


def _new_client(place: StorePlace) -> Any:
    store = client_library(place.root).store
    family = place.family
    before = f"storage.{family}."
    settings = settings_of(place)
    arguments: dict[str, Any] = {
        argument: settings[before + key] for key, argument in ARGUMENTS[family].items() if before + key in settings
    }
    if "skip_signature" in arguments:
        arguments["skip_signature"] = arguments["skip_signature"] == "true"
    is_plain = family == "http" or settings.get(f"{before}allow-http") == "true"
    common = {"client_options": {"timeout": _TIMEOUT, "allow_http": is_plain}, "retry_config": _RETRIES}
    bucket = place.root.partition("://")[2]
    try:
        if family == "s3":
            return store.S3Store(bucket, **arguments, **common)
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
        raise _as_os_error(error, path) from None


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


def _as_os_error(error: Exception, path: str) -> OSError:
    kind = CutAnswerError if _CUT in str(error) else OSError
    text, known = str(error), _KNOWN.get(type(error).__name__)
    code, request, status = _CODE.search(text), _REQUEST.search(text), _STATUS.search(text)
    family = place_of(path).family
    number, what, advice = known or (errno.EIO, "the store cannot be reached", "")
    if code is not None and code[1] == "NoSuchBucket":
        number, what, advice = errno.ENXIO, "there is no such bucket", "look at its name and at the region"
    elif known is None:
        settings = "" if family == "http" else f", storage.{family}.endpoint, and credentials"
        advice = f"look at the network{settings}"
        if "BadScheme" in text and family != "http":
            advice = f"its endpoint is http://, which storage.{family}.allow-http: true allows"
        elif "169.254.169.254" in text or "metadata.google" in text:
            what, advice = "there are no credentials", _credentials_of(family)
    elif number == errno.EACCES:
        advice = f"{advice if family != 'http' else ''}{_credentials_of(family)}"
    notes = [] if code is None else [code[1]]
    notes += [] if request is None else [f"request {request[1]}"]
    notes += [status[1].strip()] if not notes and status is not None else []
    said = f"{what} ({', '.join(notes)})" if notes else what
    return kind(number, f"{said}; {advice}" if advice else said, path)


def _credentials_of(family: str) -> str:
    return {
        "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or storage.s3.access-key-id and"
        " storage.s3.secret-access-key; storage.s3.anonymous: true for a public bucket",
        "gcs": "set GOOGLE_APPLICATION_CREDENTIALS, or storage.gcs.service-account-file; storage.gcs.anonymous: true"
        " for a public bucket",
        "azure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or storage.azure.account-name and"
        " storage.azure.account-key",
        "http": "the server refuses it, or asks for a login, which is not supported",
    }[family]
