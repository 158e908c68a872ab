"""The record that a leader writes into nodes: with a MAC, so that only holders of the secret can write one.

    {"record": {"cluster": ..., "epoch": 17179869186, "session": <uuid>, "address": "host:port"}, "mac": <hex>}
    {"cluster": ..., "name": ..., "write": <hex>, "mac": <hex>} newline, content: of any bytes, the MAC is over all

Nothing is believed before the MAC fits; a node of another cluster does not fit either.

Held by: tests/ha/test_zookeeper.py
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from typing import NamedTuple

from ha.information import LeaderInformation
from ha.state_limits import CONTENT_MAX_BYTES
from ha.zookeeper_settings import ZooKeeperSettings

NODE_MAX_BYTES = CONTENT_MAX_BYTES


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


class StateRecord(NamedTuple):
    """A content; ``write`` is the number of the write that it came with."""

    write: str
    content: bytes


def encode_state(record: StateRecord, settings: ZooKeeperSettings, name: str) -> bytes:
    """Return the node of a content."""
    header: dict[str, object] = {"cluster": settings.cluster_id, "name": name, "write": record.write}
    sealed = json.dumps(header | {"mac": _state_mac(header, record.content, settings)}).encode()
    return sealed + b"\n" + record.content


def decode_state(node: bytes, settings: ZooKeeperSettings, name: str) -> StateRecord:
    """Return the content of a node; ValueError when it is not from a holder of this cluster's secret."""
    line, _, content = node.partition(b"\n")
    if len(content) > CONTENT_MAX_BYTES:
        raise ValueError(f"{len(node)} bytes are more than this cluster writes")
    try:
        header = json.loads(line)
        mac, write = str(header.pop("mac")), str(header["write"])
        fits = hmac.compare_digest(mac.encode(), _state_mac(header, content, settings).encode())
        if fits and (header["cluster"], header["name"]) == (settings.cluster_id, name):
            return StateRecord(write, content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("this cluster did not write it") from error
    raise ValueError("it was changed, or written with another cluster secret or under another name")


def _state_mac(header: dict[str, object], content: bytes, settings: ZooKeeperSettings) -> str:
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return hmac.new(settings.key(b"state"), text + b"\n" + content, hashlib.sha256).hexdigest()


def _mac(record: dict[str, object], settings: ZooKeeperSettings) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return hmac.new(settings.key(b"record"), text, hashlib.sha256).hexdigest()
