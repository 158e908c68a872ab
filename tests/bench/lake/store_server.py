"""A server of S3 for measurements: files of a folder as objects of any bucket, each answer after so many milliseconds.

    with served(folder, delay_ms=30) as store:
        store.settings                  options of an environment that reads s3://bucket/NAME from it
        store.counts()                  (requests, bytes of answers) since the last call

It knows what reading asks for: GET with a range, HEAD, a listing of a prefix. Tests of what is right use moto.
"""

import contextlib
import email.utils
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

_COUNTS = "/-/counts"


@dataclass(frozen=True)
class ServedStore:
    """A server that runs."""

    endpoint: str

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of an environment that reads from it."""
        keys = {"endpoint": self.endpoint, "region": "us-east-1", "allow-http": True, "anonymous": True}
        return {f"storage.s3.{key}": value for key, value in keys.items()}

    def counts(self) -> tuple[int, int]:
        """Return the requests, and bytes of answers, since the last call."""
        with urllib.request.urlopen(self.endpoint + _COUNTS) as answer:
            requests, size = json.load(answer)
        return requests, size


@contextlib.contextmanager
def served(folder: Path, delay_ms: int = 0):
    """Run a server in a process of its own until the end of the block."""
    command = [sys.executable, "-m", __name__, str(folder), str(delay_ms)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    try:
        yield ServedStore(f"http://127.0.0.1:{int(server.stdout.readline())}")
    finally:
        server.terminate()
        server.wait(10)
        server.stdout.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder, delay_s = Path(), 0.0
    lock, requests, sent = threading.Lock(), 0, 0

    def log_message(self, *_):
        pass

    def _count(self, size):
        with self.lock:
            type(self).requests += 1
            type(self).sent += size

    def _answer(self, status, content=b"", headers=(), size=None):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if size is None else size))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == _COUNTS:
            with self.lock:
                counts, type(self).requests, type(self).sent = [self.requests, self.sent], 0, 0
            self._answer(200, json.dumps(counts).encode())
            return
        time.sleep(self.delay_s)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        key = urllib.parse.unquote(url.path).lstrip("/").partition("/")[2]
        if "list-type" in query:
            self._list(query.get("prefix", ""))
            return
        path = self.folder / key
        if not path.is_file():
            self._count(0)
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        size, begin, end = path.stat().st_size, 0, path.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if wanted:
            begin = int(wanted[1]) if wanted[1] else max(0, size - int(wanted[2]))
            end = min(size, int(wanted[2]) + 1) if wanted[1] and wanted[2] else size
        headers = _headers(path)
        if wanted:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        is_head = self.command == "HEAD"
        self._count(0 if is_head else end - begin)
        self._answer(206 if wanted else 200, b"", headers, end - begin)
        if not is_head:
            self.wfile.flush()
            with path.open("rb") as file:
                while begin < end:
                    begin += os.sendfile(self.connection.fileno(), file.fileno(), begin, end - begin)

    do_HEAD = do_GET  # noqa: N815 - the server's name

    def _list(self, prefix):
        self._count(0)
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        names = [(str(path.relative_to(self.folder)), path) for path in found]
        entries = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{path.stat().st_size}</Size>"
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(path.stat().st_mtime))}</LastModified>"
            f"<ETag>{_headers(path)['ETag']}</ETag></Contents>"
            for name, path in names
            if name.startswith(prefix)
        )
        self._answer(200, f"<ListBucketResult>{entries}<IsTruncated>false</IsTruncated></ListBucketResult>".encode())


def _headers(path: Path) -> dict[str, str]:
    status = path.stat()
    tag = hashlib.sha256(f"{path} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:32]
    return {
        "ETag": f'"{tag}"',
        "Last-Modified": email.utils.formatdate(int(status.st_mtime), usegmt=True),
        "Accept-Ranges": "bytes",
    }


if __name__ == "__main__":
    _Handler.folder, _Handler.delay_s = Path(sys.argv[1]), int(sys.argv[2]) / 1000
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    listening.daemon_threads = True
    sys.stdout.write(f"{listening.server_address[1]}\n")
    sys.stdout.flush()
    listening.serve_forever()
