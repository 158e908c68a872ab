"""Mutual TLS: contexts for both ends of every connection, from ``security.ssl.*``.

    tls_contexts(configuration) ─► None, or Tls(server, client)      certificate_pem: for libraries that take no context
    check_own(configuration, tls, host) ─► the two meet in memory: what others would refuse is told before they do

One certificate authority of the cluster's own (``bin/make-certificates.sh``) signs one certificate for all of its
processes and clients; both ends show theirs and check the other's: the authority, its dates, and (clients) that it
names the host that was called. TLS 1.3 only. The cluster's secret is needed as well: a certificate says which
cluster, the secret says that the request was not made by another user of the machine.

Relative paths begin at the configuration's folder. A private key that others may read is refused.

Held by: tests/rpc/test_tls.py
"""

from __future__ import annotations

import contextlib
import logging
import ssl
import time
from pathlib import Path
from typing import Any, NamedTuple

from engine.config.loader import Configuration, config_directory
from engine.config.options import SSL_CA, SSL_CERTIFICATE, SSL_ENABLED, SSL_KEY
from engine.errors import ConfigurationError
from engine.rpc.secret_file import SecretFileError, is_open_to_others

_log = logging.getLogger(__name__)

#: days before its end from which a certificate is warned of at each start
_SOON_DAYS = 30


class Tls(NamedTuple):
    """TLS contexts of a listening and of a calling side."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def certificate_pem(configuration: Configuration) -> tuple[bytes, bytes] | None:
    """Return certificate and key of this process, None without TLS; ConfigurationError for files that do not fit."""
    if tls_contexts(configuration) is None:
        return None
    folder = config_directory() or Path()
    chain, key = (folder / str(configuration.get(option)) for option in (SSL_CERTIFICATE, SSL_KEY))
    return chain.read_bytes(), key.read_bytes()


def tls_contexts(configuration: Configuration) -> Tls | None:
    """Return the contexts that the configuration asks for; ConfigurationError when a file is missing or unfit."""
    if not configuration.get(SSL_ENABLED):
        return None
    paths = {}
    for option in (SSL_CERTIFICATE, SSL_KEY, SSL_CA):
        value = configuration.get(option)
        if not value:
            raise ConfigurationError(
                f"security.ssl.enabled needs {option.key}: bin/make-certificates.sh makes the files"
            )
        paths[option.key] = (config_directory() or Path()) / value
    return make_tls(paths[SSL_CERTIFICATE.key], paths[SSL_KEY.key], paths[SSL_CA.key])


def check_own(configuration: Configuration, tls: Tls | None, host: str | None = None) -> None:
    """Raise SecretFileError where every other process would refuse the certificate: its dates, authority, uses, name.

    A process that is called warns if its certificate expires soon.

    Args: tls: contexts of that configuration; host: under which others find this process, None for one that only calls.
    """
    if tls is None:
        return
    try:
        shown = _shown_certificate(tls, host)
    except ssl.SSLCertVerificationError as error:
        raise SecretFileError(
            f"others refuse the certificate of this process, {configuration.get(SSL_CERTIFICATE)}: "
            f"{error.verify_message} (authority: {configuration.get(SSL_CA)}): bin/make-certificates.sh makes the files"
        ) from error
    left_days = (ssl.cert_time_to_seconds(str(shown["notAfter"])) - time.time()) / 86_400
    if host is not None and left_days < _SOON_DAYS:
        _log.warning(
            "the certificate %s expires in %d days, on %s: renew it, and restart this process",
            configuration.get(SSL_CERTIFICATE),
            left_days,
            shown["notAfter"],
        )


def certificate_ends_s(configuration: Configuration) -> dict[str, float]:
    """Return the ends of the own certificate and of the first authority, seconds since 1970; none without TLS."""
    tls = tls_contexts(configuration)
    if tls is None:
        return {}
    shown = {"own": [_shown_certificate(tls, None)], "authority": tls.client.get_ca_certs()}
    return {
        name: float(min(ssl.cert_time_to_seconds(str(each["notAfter"])) for each in certificates))
        for name, certificates in shown.items()
        if certificates
    }


def _shown_certificate(tls: Tls, host: str | None) -> dict[str, Any]:
    """Return the certificate as the other side reads it; raises SSLCertVerificationError where one refuses it."""
    called, calling = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls.client.check_hostname = host is not None
    sides = (
        tls.client.wrap_bio(called, calling, server_hostname=host),
        tls.server.wrap_bio(calling, called, server_side=True),
    )
    try:
        for side in (*sides, *sides):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    finally:
        tls.client.check_hostname = True
    return sides[1].getpeercert() or {}


def make_tls(certificate: Path, key: Path, authority: Path) -> Tls:
    """Return contexts of a certificate with its key, and the authority that the other side's must come from."""
    for path in (certificate, key, authority):
        if not path.is_file():
            raise SecretFileError(f"the TLS file {path} is not there: bin/make-certificates.sh makes the files")
    if is_open_to_others(key.stat()):
        raise SecretFileError(f"others may read the private key {key}: run chmod 600 {key}")
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(certificate, key)
            context.load_verify_locations(authority)
        except (ssl.SSLError, OSError) as error:
            raise SecretFileError(
                f"the TLS files {certificate}, {key} and {authority} do not fit together: {error}"
            ) from error
    client.check_hostname = True
    return Tls(server, client)
