"""Mutual TLS with the certificates that bin/make-certificates.sh makes."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.blob.blob_cache import BlobCache
from engine.blob.blob_server import BlobServer
from engine.blob.blob_store import BlobStore
from engine.config.loader import configuration_from_texts
from engine.errors import ConfigurationError, EngineError
from engine.ids import JobId
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError
from engine.rpc.fencing import LeaderFence
from engine.rpc.http_connection import ConnectionLimits
from engine.rpc.http_server import HttpServer
from engine.rpc.http_service import HttpRpcService
from engine.rpc.secret_file import SecretFileError
from engine.rpc.tls import certificate_ends_s, check_own, make_tls, tls_contexts
from tests.blob.test_blobs import key_of
from tests.rpc.served import SECRET, WAIT_S
from tests.rpc.test_http_service import CODEC
from tests.rpc.test_local_gateway import Add, Counter

SCRIPT = Path(__file__).parents[2] / "bin" / "make-certificates.sh"


def made(folder, *hosts):
    return subprocess.run([SCRIPT, folder, *hosts], check=True, capture_output=True, text=True, timeout=60).stdout


def contexts(folder, certificate="cluster", authority=None):
    return make_tls(folder / f"{certificate}.pem", folder / f"{certificate}.key", (authority or folder) / "ca.pem")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    made(folder)
    _sign(folder, "expired", "DNS:localhost,IP:127.0.0.1", "20200101000000Z", "20200201000000Z")
    _sign(folder, "elsewhere", "DNS:elsewhere.example", "20200101000000Z", "20990101000000Z")
    return folder


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    made(folder)
    return folder


def _sign(folder, name, names, begin, end):
    """A further certificate of the authority, with dates of our choice."""
    (folder / "index.txt").write_text("")
    (folder / "extensions").write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
    (folder / "ca.conf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n"
    )
    key, request = f"{folder}/{name}.key", f"{folder}/{name}.csr"
    for command in (
        f"openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout {key} "
        f"-out {request} -subj /CN={name}",
        f"openssl ca -batch -config {folder}/ca.conf -cert {folder}/ca.pem -keyfile {folder}/ca.key -in {request} "
        f"-out {folder}/{name}.pem -notext -startdate {begin} -enddate {end} -extfile {folder}/extensions",
    ):
        subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    (folder / f"{name}.key").chmod(0o600)


def settings_of(folder, certificate="cluster", authority=None):
    files = {"certificate": f"{certificate}.pem", "key": f"{certificate}.key"}
    texts = {f"security.ssl.{name}": str(folder / file) for name, file in files.items()}
    texts |= {"security.ssl.enabled": "true", "security.ssl.ca": str((authority or folder) / "ca.pem")}
    return configuration_from_texts(texts, "test")


async def call(server_tls, client_tls, way, host="127.0.0.1", has_secret=True):
    """One call from one process to another; returns the numbers that the called one has."""
    secret = Credentials(SECRET) if has_secret else None
    servers = [HttpServer("127.0.0.1", (0,), secret, server_tls) for _ in range(2)]
    called, calling = (
        HttpRpcService(server, CODEC, secret, tls) for server, tls in zip(servers, (None, client_tls), strict=True)
    )
    endpoint = Counter(LeaderFence(1))
    called.start(endpoint)
    for server in servers:
        await server.start()
    authority = f"{host}:{servers[0].port}"
    if way == "requests":
        calling._requests.note(authority)
    try:
        gateway = calling.connect(f"{authority}/counter", 1)
        return (await gateway.ask(Add([1]), WAIT_S)).numbers
    except EngineError:
        assert endpoint.numbers == []
        raise
    finally:
        await calling.close()
        for server in servers:
            await server.stop()


ways = pytest.mark.parametrize("way", ["frames", "requests"])


@ways
def test_two_processes_with_certificates_of_one_authority_talk(own, way):
    tls = contexts(own)
    assert asyncio.run(call(tls.server, tls.client, way)) == [1]
    assert asyncio.run(call(tls.server, tls.client, way, "localhost")) == [1]
    assert asyncio.run(call(tls.server, tls.client, way, has_secret=False)) == [1]


@ways
@pytest.mark.parametrize("server", ["foreign", "expired", "elsewhere", "plain"])
def test_a_caller_refuses_a_server_of_another_authority_or_name_or_past_its_date(own, foreign, server, way):
    server_tls = {
        "foreign": contexts(foreign, authority=own).server,
        "expired": contexts(own, "expired").server,
        "elsewhere": contexts(own, "elsewhere").server,
        "plain": None,
    }[server]
    text = {"foreign": "verify failed", "expired": "expired", "elsewhere": "not valid for", "plain": "WRONG_VERSION"}
    with pytest.raises(AccessDeniedError, match=f"do not trust each other.*{text[server]}"):
        asyncio.run(call(server_tls, contexts(own).client, way))


@ways
@pytest.mark.parametrize("client", ["foreign", "expired", "none", "plain"])
def test_a_server_refuses_a_caller_without_a_good_certificate(own, foreign, client, way):
    bare = ssl.create_default_context(cafile=own / "ca.pem")
    client_tls = {
        "foreign": contexts(foreign, authority=own).client,
        "expired": contexts(own, "expired").client,
        "none": bare,
        "plain": None,
    }[client]
    match = (
        "nothing answers" if client == "plain" else "refuses the certificate of this process|do not trust each other"
    )
    with pytest.raises((AccessDeniedError, EndpointUnreachableError), match=match):
        asyncio.run(call(contexts(own).server, client_tls, way))


def test_a_certificate_alone_is_not_the_secret(own):
    tls = contexts(own)

    async def scenario():
        server = HttpServer("127.0.0.1", (0,), Credentials(SECRET), tls.server)
        HttpRpcService(server, CODEC, None)
        await server.start()

        def ask(**headers):
            headers |= {"Upgrade": "drey-calls", "Connection": "Upgrade"}
            connection = http.client.HTTPSConnection("localhost", server.port, timeout=WAIT_S, context=tls.client)
            try:
                connection.request("POST", "/rpc", b"", headers)
                return connection.getresponse().status
            finally:
                connection.close()

        assert await asyncio.to_thread(ask) == 401
        headers = {AUTHORIZATION: Credentials(SECRET).sign("POST", "/rpc")}
        assert await asyncio.to_thread(lambda: ask(**headers)) == 101
        await server.stop()

    asyncio.run(scenario())


def test_mutual_tls_lets_a_server_start_off_loopback_and_one_sided_does_not(own):
    async def started(tls):
        server = HttpServer("0.0.0.0", (0,), None, tls)
        await server.start()
        await server.stop()

    asyncio.run(started(contexts(own).server))
    one_sided = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ConfigurationError, match="open to the network"):
        asyncio.run(started(one_sided))


def test_a_hello_that_never_ends_is_closed_and_others_are_served(own):
    tls = contexts(own)

    async def scenario():
        limits = ConnectionLimits(head_timeout_s=0.5)
        server = HttpServer("127.0.0.1", (0,), Credentials(SECRET), tls.server, limits=limits)
        HttpRpcService(server, CODEC, None)
        await server.start()
        slow = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
        slow.sendall(b"\x16\x03\x01\x02\x00")
        assert await asyncio.to_thread(slow.recv, 1) == b""
        slow.close()
        await server.stop()

    asyncio.run(scenario())


def test_blobs_travel_over_tls(own, tmp_path):
    tls = contexts(own)
    job_id = JobId.random()

    async def scenario():
        store = BlobStore(tmp_path / "server")
        with store.writer(job_id.value, key_of(b"x")) as writer:
            writer.write(b"x")
            writer.commit()
        server = HttpServer("127.0.0.1", (0,), Credentials(SECRET), tls.server)
        server.add_routes(BlobServer(store, 1000).routes)
        await server.start()
        cache = BlobCache(
            BlobStore(tmp_path / "cache"), lambda: f"localhost:{server.port}", Credentials(SECRET), 1000, tls.client
        )
        path = await asyncio.to_thread(cache.fetch, job_id, key_of(b"x"))
        assert path.read_bytes() == b"x"
        await server.stop()

    asyncio.run(scenario())


def test_the_configuration_names_the_files_and_the_script_writes_it(tmp_path):
    lines = made(tmp_path / "tls", "worker-1.example", "10.0.0.7").splitlines()
    settings = dict(line.split(": ", 1) for line in lines)
    assert tls_contexts(configuration_from_texts(settings, "test")) is not None
    assert tls_contexts(configuration_from_texts({}, "test")) is None
    for name in ("ca.key", "cluster.key"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600
    again = subprocess.run([SCRIPT, tmp_path / "tls"], capture_output=True, text=True, check=False, timeout=60)
    assert again.returncode == 1 and "is there already" in again.stderr
    with pytest.raises(ConfigurationError, match=r"security\.ssl\.enabled needs security\.ssl\.certificate"):
        tls_contexts(configuration_from_texts({"security.ssl.enabled": "true"}, "test"))


def test_files_that_are_missing_open_or_do_not_fit_are_named(own, foreign, tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.pem is not there"):
        make_tls(own / "none.pem", own / "cluster.key", own / "ca.pem")
    with pytest.raises(ConfigurationError, match="do not fit together"):
        make_tls(own / "cluster.pem", foreign / "cluster.key", own / "ca.pem")
    key = tmp_path / "open.key"
    key.write_bytes((own / "cluster.key").read_bytes())
    key.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        make_tls(own / "cluster.pem", key, own / "ca.pem")


@pytest.mark.parametrize(
    ("certificate", "host", "why"),
    [
        ("cluster", None, ""),
        ("cluster", "localhost", ""),
        ("cluster", "127.0.0.1", ""),
        ("elsewhere", None, ""),
        ("elsewhere", "elsewhere.example", ""),
        ("elsewhere", "localhost", "not valid for 'localhost'"),
        ("cluster", "10.0.0.7", "not valid for '10.0.0.7'"),
        ("expired", None, "has expired"),
    ],
)
def test_a_certificate_that_all_others_refuse_is_told_before_a_connection(own, certificate, host, why):
    configuration = settings_of(own, certificate)
    tls = tls_contexts(configuration)
    if not why:
        check_own(configuration, tls, host)
    else:
        with pytest.raises(SecretFileError, match=f"{certificate}.pem: .*{why}.*make-certificates"):
            check_own(configuration, tls, host)
    assert tls.client.check_hostname


def test_a_process_warns_of_a_certificate_that_ends_soon(own, caplog):
    now = datetime.now(UTC)
    for name, days in (("soon", 12.5), ("later", 40)):
        end = now + timedelta(days=days)
        _sign(own, name, "DNS:localhost", "20200101000000Z", end.strftime("%Y%m%d%H%M%SZ"))
        configuration = settings_of(own, name)
        check_own(configuration, tls_contexts(configuration))
        assert caplog.messages == [], "one that only calls"
        check_own(configuration, tls_contexts(configuration), "localhost")
        assert [text for text in caplog.messages if "soon.pem expires in 12 days" in text] == caplog.messages
        assert len(caplog.messages) == (name == "soon")
        caplog.clear()


def test_the_ends_of_both_certificates_are_known_for_metrics(own):
    ends = certificate_ends_s(settings_of(own, "elsewhere"))
    assert ends["own"] == datetime(2099, 1, 1, tzinfo=UTC).timestamp()
    ten_years_s = (datetime.now(UTC) + timedelta(days=3650)).timestamp()
    assert abs(ends["authority"] - ten_years_s) < 86_400
    assert certificate_ends_s(configuration_from_texts({}, "test")) == {}


def test_a_certificate_of_another_authority_is_refused_by_its_own_process(own, foreign):
    configuration = settings_of(foreign, authority=own)
    with pytest.raises(SecretFileError, match="others refuse the certificate of this process"):
        check_own(configuration, tls_contexts(configuration))
    check_own(configuration, None)
