"""Causes of errors of a store: the number of an OSError, a message, and advice.

    explained(name, text, place.family) ─► Explained(number, message)     name, text: of the client's error

The client tells kinds of errors apart by the status of an answer alone. The code in the answer says more: which of the
many reasons of a 403 it is, that a bucket is missing, or is elsewhere. Without an answer the cause lies in the network,
and the innermost error names it. A table has each of them.

A message has the code and the id of the request, by which its operators find it, and never the text of an
answer or of a header, in which secrets may be.

Held by: tests/storage/test_store_errors.py
"""

from __future__ import annotations

import errno
import re
from typing import Final, NamedTuple


class Explained(NamedTuple):
    """An error as a number of the system and a message."""

    number: int
    message: str


class _Cause(NamedTuple):
    """A cause of errors; ``{family}`` in ``advice`` stands for the word in the keys of settings."""

    number: int
    what: str
    advice: str = ""


_KEYS: Final = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or storage.s3.access-key-id and"
    " storage.s3.secret-access-key; storage.s3.anonymous: true for a public bucket",
    "gcs": "set GOOGLE_APPLICATION_CREDENTIALS, or storage.gcs.service-account-file; storage.gcs.anonymous: true"
    " for a public bucket",
    "azure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or storage.azure.account-name and"
    " storage.azure.account-key",
    "http": "the server refuses it, or asks for a login, which is not supported",
}
_NO_OBJECT: Final = _Cause(errno.ENOENT, "there is no such object")
_NO_BUCKET: Final = _Cause(errno.ENXIO, "there is no such bucket", "look at its name and at the region")
_DENIED: Final = _Cause(errno.EACCES, "access is denied", "its credentials may not do this: {keys}")
_UNKNOWN_KEYS: Final = _Cause(errno.EACCES, "the credentials are wrong", "{keys}")
_EXPIRED: Final = _Cause(
    errno.EACCES, "the credentials have expired", "get new ones, or let a role of the machine renew them: {keys}"
)
_NO_CREDENTIALS: Final = _Cause(errno.EIO, "there are no credentials", "{keys}")
_ELSEWHERE: Final = _Cause(
    errno.EREMCHG, "the bucket is in another region", "set AWS_REGION or storage.s3.region to that of the bucket"
)
_BUSY: Final = _Cause(
    errno.EBUSY, "the store is too busy", "it was asked several times; run the job later, or with less parallelism"
)
_LACKING: Final = _Cause(errno.ENOTSUP, "the store cannot do this")
_EMPTY: Final = _Cause(errno.ERANGE, "it has no such bytes")
_REPLACED: Final = _Cause(errno.ESTALE, "it was replaced meanwhile", "run the job again")
#: numbers of errors that another attempt meets again
REFUSALS: Final = frozenset({errno.ENXIO, errno.EACCES, errno.EREMCHG, errno.ENOTSUP, errno.EINVAL, errno.EPROTO})
_UNREACHED: Final = "look at the network{settings}"

#: causes by the code in an answer
_CODES: Final = {
    "NoSuchKey": _NO_OBJECT,
    "BlobNotFound": _NO_OBJECT,
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "InvalidAccessKeyId": _UNKNOWN_KEYS,
    "InvalidAuthenticationInfo": _UNKNOWN_KEYS,
    "SignatureDoesNotMatch": _UNKNOWN_KEYS,
    "AuthenticationFailed": _UNKNOWN_KEYS,
    "InvalidToken": _EXPIRED,
    "ExpiredToken": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestTimeTooSkewed": _Cause(errno.EACCES, "the clock of this machine is wrong", "set it"),
    "AccountProblem": _Cause(errno.EACCES, "the account is closed", "ask its operators"),
    "AccountIsDisabled": _Cause(errno.EACCES, "the account is closed", "ask its operators"),
    "InvalidObjectState": _Cause(errno.EACCES, "the object is archived", "restore it first"),
    "BlobArchived": _Cause(errno.EACCES, "the object is archived", "restore it first"),
    "PermanentRedirect": _ELSEWHERE,
    "AuthorizationHeaderMalformed": _ELSEWHERE,
    "IllegalLocationConstraintException": _ELSEWHERE,
    "NotImplemented": _LACKING,
    "InvalidRange": _EMPTY,
    "KeyTooLongError": _Cause(errno.ENAMETOOLONG, "the name is too long", "stores take 1,024 bytes"),
    "SlowDown": _BUSY,
    "ServiceUnavailable": _BUSY,
    "ServerBusy": _BUSY,
    "InternalError": _Cause(errno.EREMOTEIO, "the store has an error of its own", "run the job later"),
    "QuotaExceeded": _Cause(errno.EDQUOT, "the store is full", "remove something, or ask its operators"),
}
#: causes by words of the innermost error, the first that is there
_WORDS: Final = (
    ("BadScheme", _Cause(errno.EIO, "the endpoint is http://", "storage.{family}.allow-http: true allows it")),
    ("169.254.169.254", _NO_CREDENTIALS),
    ("metadata.google", _NO_CREDENTIALS),
    ("BareRedirect", _ELSEWHERE),
    (
        "failed to lookup address",
        _Cause(errno.EHOSTUNREACH, "the name of its host is not known", "look at storage.{family}.endpoint and at DNS"),
    ),
    (
        "ConnectionRefused",
        _Cause(errno.ECONNREFUSED, "nothing listens at its address", "look at storage.{family}.endpoint"),
    ),
    (
        "InvalidCertificate",
        _Cause(
            errno.EPROTO,
            "its certificate is not trusted",
            "storage.{family}.ca-file names the certificate of its signer",
        ),
    ),
    (
        "InvalidContentType",
        _Cause(errno.EPROTO, "it does not speak TLS", "look at storage.{family}.endpoint: http:// or https://"),
    ),
    ("kind: Timeout", _Cause(errno.ETIMEDOUT, "it does not answer in time", _UNREACHED)),
    ("NotImplemented", _LACKING),
)
#: causes by the status of an answer without a code
_STATUSES: Final = {
    "400": _Cause(errno.EIO, "it refuses the request", "look at the region, at storage.{family}.endpoint and at keys"),
    "401": _UNKNOWN_KEYS,
    "403": _DENIED,
    "404": _NO_OBJECT,
    "416": _EMPTY,
    "429": _BUSY,
    "500": _CODES["InternalError"],
    "501": _LACKING,
    "503": _BUSY,
    "507": _CODES["QuotaExceeded"],
}
#: causes by the name of the client's error
_NAMES: Final = {
    "FileNotFoundError": _NO_OBJECT,
    "NotFoundError": _NO_OBJECT,
    "PermissionDeniedError": _DENIED,
    "UnauthenticatedError": _UNKNOWN_KEYS,
    "PreconditionError": _REPLACED,
    "AlreadyExistsError": _Cause(errno.EEXIST, "there is one"),
    "InvalidPathError": _Cause(errno.EINVAL, "no object can have this key"),
    "NotSupportedError": _LACKING,
}
#: names of errors that say all there is, whatever the code in the answer
_CONDITIONS: Final = frozenset({"PreconditionError", "AlreadyExistsError"})
#: words of an error of the client in the text of another library that has it, too
_OF_CLIENT: Final = re.compile(r"<Code>|Generic \w+ error|status code|error sending request|is not a supported|No such")
_CODE: Final = re.compile(r"<Code>([^<]{1,100})</Code>")
_REQUEST: Final = re.compile(r"RequestI[dD][>:]\s*([^<\s]{1,100})")
_BARE_STATUS: Final = re.compile(r"status code\W{1,20}(\d{3}\b)")
_STATUS: Final = re.compile(r"\bstatus code: ((\d{3})\b[A-Za-z ]{0,30})")


def explained_text(text: str, family: str) -> Explained | None:
    """Return the meaning of an error of a library that has the same client within; None: it is another one."""
    if not _OF_CLIENT.search(text):
        return None
    status = _BARE_STATUS.search(text)
    return explained("", text if status is None else f"{text} status code: {status[1]} ", family)


def explained(name: str, text: str, family: str) -> Explained:
    """Return the meaning of an error of the client."""
    code, request, status = _CODE.search(text), _REQUEST.search(text), _STATUS.search(text)
    cause = _NAMES.get(name)
    if name not in _CONDITIONS:
        said = _CODES.get(code[1]) if code is not None else None
        cause = said or cause or next((each for word, each in _WORDS if word in text), None)
    if cause is None and status is not None:
        cause = _STATUSES.get(status[2])
    number, what, advice = cause or _Cause(errno.EIO, "the store cannot be reached", _UNREACHED)
    notes = [] if code is None else [code[1]]
    notes += [] if request is None else [f"request {request[1]}"]
    notes += [status[1].strip()] if not notes and status is not None else []
    if family == "http":  # it has neither settings nor credentials
        advice = _KEYS["http"] if number == errno.EACCES else advice if "{" not in advice else "look at the URL"
        if cause is _LACKING:
            what, advice = (
                "the web server does not answer requests for parts of a file",
                "download it, and read the copy",
            )
    settings = "" if family == "http" else f", storage.{family}.endpoint, and credentials"
    advice = advice.format(keys=_KEYS[family], family=family, settings=settings)
    said_all = f"{what} ({', '.join(notes)})" if notes else what
    return Explained(number, f"{said_all}; {advice}" if advice else said_all)
