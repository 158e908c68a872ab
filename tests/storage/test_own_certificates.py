"""A store whose certificate an authority of its own has signed: trusted by storage.s3.ca-file, and by nothing else."""

import subprocess

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import ConfigurationError, PlanError
from tests.storage.moto_server import KEYS, REGION, free_port, serving

SIGNED = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with ca.pem, and a key and a certificate of 127.0.0.1 that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(folder, "req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Own")
    openssl(folder, "req", *new_key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=127.0.0.1")
    (folder / "names").write_text(SIGNED)
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl(folder, "x509", "-req", "-in", "own.csr", "-out", "own.pem", *signed)
    return folder


@pytest.fixture(scope="module")
def endpoint(authority):
    port, files = free_port(), ("--ssl-cert", f"{authority}/own.pem", "--ssl-key", f"{authority}/own.key")
    with serving("data", port, "--ssl", *files, ca_file=f"{authority}/ca.pem") as found:
        yield found


def settings(endpoint, **more):
    keys = {"access-key-id": KEYS["access_key_id"], "secret-access-key": KEYS["secret_access_key"]}
    return {f"storage.s3.{key}": text for key, text in {"endpoint": endpoint, "region": REGION, **keys, **more}.items()}


def test_a_certificate_is_trusted_that_the_file_has_signed(endpoint, authority):
    ca_file = f"{authority}/ca.pem"
    with Environment(settings(endpoint, **{"ca-file": ca_file})) as env:
        env.from_arrow(pa.table({"v": [1, 2]})).write_parquet("s3://data/rows")
        env.execute()
    options = {"endpoint_url": endpoint, "region": REGION, "ca_file": ca_file, **KEYS}
    with Environment() as env:
        assert env.read_parquet("s3://data/rows", storage_options=options).count() == 2


@pytest.mark.thorough
def test_another_certificate_is_not_trusted_and_the_option_is_named(endpoint):
    with Environment(settings(endpoint)) as env, pytest.raises(PlanError, match=r"not trusted.*storage\.s3\.ca-file"):
        env.read_parquet("s3://data/rows")


def test_a_file_without_certificates_and_one_that_is_missing_are_told(endpoint, authority, tmp_path):
    wrong = {tmp_path / "none.pem": "cannot be read: No such file", authority / "names": "no certificate"}
    for path, words in wrong.items():
        with (
            Environment(settings(endpoint, **{"ca-file": path})) as env,
            pytest.raises(PlanError, match=rf"storage\.s3\.ca-file: .*{words}"),
        ):
            env.read_parquet("s3://data/rows")


def test_the_library_of_delta_is_told_by_its_variable(endpoint, authority, monkeypatch):
    pytest.importorskip("deltalake")
    ca_file = f"{authority}/ca.pem"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with Environment(settings(endpoint, **{"ca-file": ca_file})) as env:
        rows = env.from_arrow(pa.table({"v": [1, 2]}))
        with pytest.raises(ConfigurationError, match="set the variable SSL_CERT_FILE="):
            rows.write_delta("s3://data/table")
        monkeypatch.setenv("SSL_CERT_FILE", ca_file)
        rows.write_delta("s3://data/table")
        env.execute()
        assert env.read_delta("s3://data/table").count() == 2
