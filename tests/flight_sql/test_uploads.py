"""Tables that clients send: whole or not at all, and nothing in them that leads out of them."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from engine.flight_sql.messages import bare, packed
from tests.flight_sql.conftest import idle, until

CLIENT = """
import os, sys
import pyarrow as pa
import pyarrow.flight as flight
from tests.flight_sql.test_uploads import command

with flight.connect(sys.argv[1]) as client:
    batch = pa.record_batch({"n": pa.array(range(1000))})
    writer, _ = client.do_put(flight.FlightDescriptor.for_command(command("sent")), batch.schema)
    for _ in range(5):
        writer.write_batch(batch)
    print("sent", flush=True)
    sys.stdin.read(1)
    os.kill(os.getpid(), 9)
"""


def command(name):
    options = bare("TableDefinitionOptions", if_not_exist=1, if_exists=1)
    return packed("CommandStatementIngest", table=name, table_definition_options=options)


def files_of(env):
    return [path for path in env.temporary_folder().rglob("upload-*") if path.is_file()]


def test_a_client_that_is_killed_while_it_sends_leaves_no_table_and_no_file(service, env):
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, service.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout.readline() == "sent\n"
    assert until(lambda: files_of(env)), "the rows have begun to come"
    client.communicate("x")
    assert until(lambda: not files_of(env)), "its file stays"
    assert "sent" not in env.tables
    assert idle(service)


def test_a_table_whose_offsets_lead_out_of_it_is_refused(service, env):
    offsets = pa.py_buffer(b"\0\0\0\0" + (3).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    damaged = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"abc"))
    batch = pa.record_batch({"s": damaged})
    with flight.connect(service.uri) as client:
        writer, _ = client.do_put(flight.FlightDescriptor.for_command(command("damaged")), batch.schema)
        with pytest.raises(pa.ArrowInvalid, match="damaged"):
            writer.write_batch(batch)
            writer.close()
    assert "damaged" not in env.tables
    assert files_of(env) == []
