"""ZooKeeperSettings: which quorum, which cluster in it, how long a silence is a loss, and the secret.

``/drey`` (root, open) ─ ``<cluster id>`` (of the holders of the secret) ─ ``leader`` ─┬ ``latch/<token>-<sequence>``
                                                                                   └ ``connection_info``
Both leaves are ephemeral: they end with the session of the process that made them. Beside ``leader`` is ``jobs``,
whose children are contents that last (``ZooKeeperStateStore``).

Held by: tests/ha/test_preflight.py
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ZooKeeperSettings:
    """``secret`` signs what a leader publishes and, with ``is_private``, is the way to read it. Times in seconds."""

    hosts: str
    secret: bytes = field(repr=False)
    root: str = "/drey"
    cluster_id: str = "default"
    session_timeout_s: float = 6.0
    connection_timeout_s: float = 15.0
    is_private: bool = True
    #: pipe to the guardian that closes the session of this process when it dies, or None
    guardian_pipe: int | None = None
    #: files: the authority of the servers' certificates ("": no TLS), the certificate of this process and its key
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""

    @property
    def folder(self) -> str:
        """The node of the leader's election."""
        return f"/{self.root.strip('/')}/{self.cluster_id.strip('/')}/leader"

    @property
    def latch_folder(self) -> str:
        """The node whose children are the candidates, in the order in which they came."""
        return f"{self.folder}/latch"

    @property
    def jobs_folder(self) -> str:
        """The node whose children are contents by name."""
        return f"/{self.root.strip('/')}/{self.cluster_id.strip('/')}/jobs"

    @property
    def information_path(self) -> str:
        """The node that tells where the leader is."""
        return f"{self.folder}/connection_info"

    def key(self, purpose: bytes) -> bytes:
        """Return a key that says nothing of the secret."""
        return hmac.new(self.secret, b"zookeeper/" + purpose, hashlib.sha256).digest()
