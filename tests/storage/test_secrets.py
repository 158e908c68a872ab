"""Secrets of stores, sought where they could be: configuration, REST, output, logs, files, errors."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engine.config.loader import configuration_from_texts
from engine.config.options import all_options
from engine.rest.jobmanager_routes import config_document
from engine.storage.fsspec_client import FSSPEC_OPTIONS

SECRET = "hush-2718"
#: options whose values are no secrets
SHOWN = {"endpoint", "region", "profile", "service-account-file", "account-name", "anonymous", "allow-http", "ca-file"}


def test_no_page_shows_an_option_that_opens_a_store():
    keys = [option.key for option in all_options() if option.key.startswith("storage.")]
    assert FSSPEC_OPTIONS in keys
    secret = [key for key in keys if key.rpartition(".")[2] not in SHOWN]
    assert len(secret) == 6, "another option of stores: is it a secret?"
    configuration = configuration_from_texts(dict.fromkeys(secret, SECRET), "test")
    shown = json.dumps(config_document(configuration)) + repr(configuration) + json.dumps(configuration.as_texts())
    assert SECRET not in shown


JOB = """
    import json, logging, sys
    logging.basicConfig(level="DEBUG")
    import pyarrow as pa
    from drey import Environment
    endpoint, scratch = sys.argv[1:]
    keys = json.loads(sys.stdin.read())
    options = {"endpoint_url": endpoint, "region": "us-east-1", "allow_http": True, **keys}
    config = {"parallelism.default": 2, "io.tmp.dirs": scratch}
    config["storage.s3.secret-access-key"] = keys["secret_access_key"]
    with Environment(config=config) as env:
        rows = env.from_arrow(pa.table({"v": list(range(50_000)), "k": [n % 7 for n in range(50_000)]}))
        rows.map(lambda row: row, schema=pa.schema({"v": pa.int64(), "k": pa.int64()})).write_parquet(
            "s3://data/secrets", overwrite=True, storage_options=options)
        print(env.execute())
        data = env.read_parquet("s3://data/secrets", storage_options=options)
        print(data.sort("v").explain(analyze=True), data.count(), repr(data))
        for path in ("s3://data/none", "s3://nobucket/none"):
            try:
                env.read_parquet(path, storage_options=options)
            except Exception as error:
                logging.exception("refused")
        def fail(row):
            raise ValueError("no")
        data.map(fail, schema=pa.schema({"v": pa.int64()})).write_csv("s3://data/failed", storage_options=options)
        env.execute()
"""


@pytest.mark.thorough
def test_a_whole_program_with_every_log_leaves_no_secret_in_files_output_or_command_lines(server, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "DREY_LOG_DIR": str(tmp_path)}
    keys = {"access_key_id": "id-hush-3141", "secret_access_key": SECRET, "session_token": "token-hush-1618"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(JOB), server.endpoint, str(tmp_path)],
        input=json.dumps(keys).encode(),
        capture_output=True,
        env=environment,
        check=False,
        timeout=300,
    )
    said = done.stdout + done.stderr
    assert b"ValueError: no" in said and b"there is no such bucket" in said, said[-3000:].decode()
    found = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    shown = [said, *(path.read_bytes() for path in found)]
    for secret in keys.values():
        assert not [text[:200] for text in shown if secret.encode() in text]
