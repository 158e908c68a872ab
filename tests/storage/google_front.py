"""What writes in the XML API of Google's store, before fake-gcs-server, which knows it for reading alone.

    PUT    /bucket/key                             an upload, x-goog-if-generation-match, x-goog-copy-source
    POST   /bucket/key?uploads                     begins an upload in parts
    PUT    /bucket/key?partNumber=..&uploadId=..   a part       POST ?uploadId=.. completes, DELETE ?uploadId=.. aborts

Everything else is passed on. The objects are the server's own; conditions are tested here, one request at a time.
"""

import itertools
import json
import threading
import urllib.parse

from tests.storage.store_proxy import Proxy

_REFUSED = b"<Error><Code>PreconditionFailed</Code><Message>a condition did not hold</Message></Error>"


class GoogleFront(Proxy):
    """The front; ``uploads`` has the parts of uploads that are neither complete nor aborted."""

    def __init__(self, endpoint):
        super().__init__(endpoint)
        self.uploads, self._numbers, self._writes = {}, itertools.count(1), threading.Lock()

    def answered(self, method, path, headers, content=b""):
        """Answer a write; pass everything else on."""
        place, _, query = path.partition("?")
        bucket, _, key = place.lstrip("/").partition("/")
        words = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        # The server answers to its own name alone.
        headers = {name.lower(): text for name, text in headers.items() if name.lower() != "host"}
        if method not in ("PUT", "POST", "DELETE") or not key or bucket in ("storage", "upload", "batch"):
            return super().answered(method, path, headers, content)
        with self._writes:
            if "uploads" in words:
                name = f"upload-{next(self._numbers)}"
                self.uploads[name] = {}
                return (
                    200,
                    {},
                    f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>".encode()
                    + (f"<Bucket>{bucket}</Bucket><Key>x</Key></InitiateMultipartUploadResult>".encode()),
                )
            if "uploadId" in words:
                return self._of_upload(method, bucket, key, words, content)
            if method == "DELETE":
                return super().answered(method, path, headers, content)
            wanted = headers.get("x-goog-if-generation-match")
            if wanted is not None and wanted != self._generation(place):
                return 412, {}, _REFUSED
            if "x-goog-copy-source" in headers:
                source = f"/{headers['x-goog-copy-source'].lstrip('/')}"
                status, found, content = super().answered("GET", source, {})
                if status != 200:
                    return status, found, content
            return self._put(bucket, key, content)

    def _of_upload(self, method, bucket, key, words, content):
        parts = self.uploads[words["uploadId"]]
        if method == "PUT":
            parts[int(words["partNumber"])] = content
            return 200, {"ETag": f'"part-{words["partNumber"]}"'}, b""
        del self.uploads[words["uploadId"]]
        if method == "DELETE":
            return 204, {}, b""
        status, headers, body = self._put(bucket, key, b"".join(parts[number] for number in sorted(parts)))
        if status != 200:
            return status, headers, body
        tag = headers["ETag"]
        return (
            200,
            headers,
            f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>".encode(),
        )

    def _generation(self, place):
        status, headers, _ = super().answered("HEAD", place, {})
        return {name.lower(): text for name, text in headers.items()}["x-goog-generation"] if status == 200 else "0"

    def _put(self, bucket, key, content):
        status, headers, body = super().answered(
            "POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={key.replace('/', '%2F')}", {}, content
        )
        if status != 200:
            return status, headers, body
        found = json.loads(body)
        return 200, {"ETag": f'"{found["etag"]}"', "x-goog-generation": found["generation"]}, b""
