"""What a leader writes into its node: JSON with a MAC, so that nobody without the secret can lead others astray.

    {"record": {"cluster": ..., "epoch": 17179869186, "session": <uuid>, "address": "host:port"}, "mac": <hex>}

Nothing is believed before the MAC fits; a node of another cluster does not fit either.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid

from ha.information import LeaderInformation
from ha.zookeeper_settings import ZooKeeperSettings

#: a node of a megabyte breaks the connection; half of it is far more than an address
NODE_MAX_BYTES = 512 << 10


def encode_leader(information: LeaderInformation, settings: ZooKeeperSettings) -> bytes:
    """Return the content of the leader's node."""
    record = {
        "cluster": settings.cluster_id,
        "epoch": information.epoch,
        "session": str(information.session),
        "address": information.address,
    }
    content = json.dumps({"record": record, "mac": _mac(record, settings)}).encode()
    if len(content) > NODE_MAX_BYTES:
        raise ValueError(f"the leader's record has {len(content)} bytes, more than {NODE_MAX_BYTES}")
    return content


def decode_leader(content: bytes, settings: ZooKeeperSettings) -> LeaderInformation:
    """Return the leader; ValueError when the content is not from a holder of this cluster's secret."""
    try:
        parts = json.loads(content)
        record, mac = parts["record"], str(parts["mac"])
        fits = hmac.compare_digest(mac.encode(), _mac(record, settings).encode())
        if fits and record["cluster"] == settings.cluster_id:
            return LeaderInformation(int(record["epoch"]), uuid.UUID(record["session"]), str(record["address"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{settings.information_path} is not a leader's record") from error
    raise ValueError(f"{settings.information_path} was written with another cluster secret")


def _mac(record: dict[str, object], settings: ZooKeeperSettings) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return hmac.new(settings.key(b"record"), text, hashlib.sha256).hexdigest()
