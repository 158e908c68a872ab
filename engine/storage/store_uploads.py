"""Uploads in parts that were begun and not completed, as a process leaves them that is killed: found, and aborted.

    abort_uploads("s3://bucket/folder/.drey-staging") ─► how many there were

The parts of such an upload are no object, so no listing of objects shows them, and the client has no request for them.
S3 has: ListMultipartUploads and AbortMultipartUpload, which are signed here as any request to S3 is. The client signs a
URL of its own first; that tells the address of the bucket, the region, and whose key it uses.

Limits: the key has to be in the settings or in the environment. With the role of a machine or of a pod, or without the
right to list uploads, nothing is found, and a rule of the bucket for incomplete uploads has to remove them. Azure
forgets parts after a week; Google needs such a rule, too.

Source: AWS Signature Version 4.
Held by: tests/storage/test_store_uploads.py
"""

from __future__ import annotations

import hashlib
import hmac
import html
import http.client
import logging
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from engine.errors import PlanError
from engine.storage.store_client import StorePlace, client_library, client_of, place_of, settings_of
from engine.storage.store_counters import note

_log = logging.getLogger(__name__)

_UPLOAD: Final = re.compile(r"<Upload>(.*?)</Upload>", re.DOTALL)
_EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()
_TIMEOUT_S: Final = 30
#: tries of a request, and the pause before the second one in seconds
_TRIES: Final = 5
_PAUSE_S: Final = 0.1


@dataclass(frozen=True)
class Bucket:
    """The address of a bucket, and the key that signs requests to it."""

    #: scheme and host
    origin: str
    #: path of the bucket, "" where the host names it
    path: str
    region: str
    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)


def abort_uploads(path: str) -> int:
    """Abort the uploads of objects below a prefix; return how many there were. What is in the way is logged."""
    place = place_of(path)
    try:
        bucket = _bucket_of(place)
        if bucket is None:
            return 0
        found = list(_uploads(place, bucket, f"{place.key}/"))
        for key, upload_id in found:
            _ask(place, bucket, "DELETE", key, {"uploadId": upload_id})
    except (OSError, http.client.HTTPException, PlanError) as error:
        _log.warning("uploads below %s that were not completed cannot be removed: %s", path, error)
        return 0
    return len(found)


def _bucket_of(place: StorePlace) -> Bucket | None:
    """Return the address of a bucket and the key to it; None where the key is not known here."""
    if place.family != "s3":
        return None
    settings, library = settings_of(place), client_library(place.root)
    if settings.get("storage.s3.anonymous") == "true":
        return None
    key = place.key or "x"
    try:
        url = urlsplit(library.sign(client_of(place), "GET", key, timedelta(seconds=60)))
    except Exception as error:  # it has several; all of them mean that there are no credentials
        _log.debug("%s: no request can be signed: %s", place.root, type(error).__name__)
        return None
    query = parse_qs(url.query)
    key_id, _, region = query["X-Amz-Credential"][0].split("/")[:3]
    own = settings.get("storage.s3.access-key-id"), settings.get("storage.s3.secret-access-key")
    known = [own, (os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY"))]
    secret = next((secret for known_id, secret in known if known_id == key_id and secret), None)
    if secret is None:
        return None
    token = query.get("X-Amz-Security-Token", [""])[0]
    base = url.path.removesuffix(f"/{quote(key, safe='/-_.~')}")
    return Bucket(f"{url.scheme}://{url.netloc}", base, region, key_id, secret, token)


def _uploads(place: StorePlace, bucket: Bucket, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the uploads below a prefix: (key, id)."""
    query = {"uploads": "", "prefix": prefix}
    while True:
        text = _ask(place, bucket, "GET", "", query).decode()
        for upload in _UPLOAD.findall(text):
            yield _value(upload, "Key"), _value(upload, "UploadId")
        if _value(text, "IsTruncated") != "true":
            return
        markers = {"key-marker": "NextKeyMarker", "upload-id-marker": "NextUploadIdMarker"}
        query |= {name: _value(text, tag) for name, tag in markers.items()}


def _value(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>([^<]*)</{tag}>", text)
    return html.unescape(found[1]) if found is not None else ""


def _ask(place: StorePlace, bucket: Bucket, method: str, key: str, query: Mapping[str, str]) -> bytes:
    """Return the answer to a signed request; one that was refused for the moment is repeated."""
    path = f"{bucket.path}/{quote(key, safe='/-_.~')}" if key else bucket.path or "/"
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    for attempt in range(_TRIES):
        headers = signed_headers(bucket, method, path, asked, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        address = f"{bucket.origin}{path}?{asked}"
        request = urllib.request.Request(address, headers=headers, method=method)  # noqa: S310 - as the client's own
        note(place.root, requests=1)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            with error:
                if error.code == http.client.NOT_FOUND:  # it was completed, or aborted
                    return b""
                if error.code < http.client.INTERNAL_SERVER_ERROR or attempt == _TRIES - 1:
                    raise OSError(f"{method} of {place.root}: status {error.code}") from None
        except (OSError, http.client.HTTPException):
            if attempt == _TRIES - 1:
                raise
        time.sleep(_PAUSE_S * 2**attempt)
    raise AssertionError("the last try returns or raises")


def signed_headers(bucket: Bucket, method: str, path: str, query: str, now: str) -> dict[str, str]:
    """Return the headers of a request without a body; ``path`` and ``query`` are quoted, ``now``: 20261128T120000Z."""
    headers = {
        "host": bucket.origin.partition("://")[2],
        "x-amz-content-sha256": _EMPTY_SHA256,
        "x-amz-date": now,
        **({"x-amz-security-token": bucket.token} if bucket.token else {}),
    }
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{_EMPTY_SHA256}"
    scope = f"{now[:8]}/{bucket.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{bucket.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    authorization = f"Credential={bucket.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    del headers["host"]
    return {**headers, "Authorization": f"AWS4-HMAC-SHA256 {authorization}"}
