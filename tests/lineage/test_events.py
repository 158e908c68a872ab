"""Events: sent by the client of OpenLineage to a file and to a server, and never in the way of a job."""

import http.server
import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import JobExecutionError

pytest.importorskip("openlineage.client")
RUN = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def sales(tmp_path):
    pq.write_table(pa.table({"shop": ["a", "b"], "price": [1.5, 2.0]}), tmp_path / "sales.parquet")
    return str(tmp_path / "sales.parquet")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Have events go to a file; return the function that reads them."""
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    config, file = tmp_path / "openlineage.yml", tmp_path / "events.json"
    config.write_text(f"transport:\n  type: file\n  log_file_path: {file}\n  append: true\n")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    return lambda: [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run(sales, out, query="SELECT shop, sum(price) AS total FROM sales WHERE price > 0 GROUP BY shop", enabled=True):
    with Environment(config={"lineage.enabled": enabled, "lineage.namespace": "nightly"}) as env:
        env.register("sales", env.read_parquet(sales))
        env.sql(query).write_parquet(str(out))
        return env.execute("sums")


def test_a_job_tells_of_its_beginning_and_its_end(log, sales, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/dag.task/{RUN}")
    run(sales, tmp_path / "out")
    began, ended = log()
    assert [began["eventType"], ended["eventType"]] == ["START", "COMPLETE"]
    assert began["run"]["runId"] == ended["run"]["runId"]
    assert (ended["job"]["namespace"], ended["job"]["name"]) == ("nightly", "sums")
    assert ended["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert ended["run"]["facets"]["parent"]["run"]["runId"] == RUN
    assert ended["run"]["facets"]["parent"]["job"].items() >= {"namespace": "airflow", "name": "dag.task"}.items()
    (source,), (output,) = ended["inputs"], ended["outputs"]
    assert (source["namespace"], source["name"]) == ("file", sales)
    assert [field["name"] for field in source["facets"]["schema"]["fields"]] == ["shop", "price"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "out"))
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert "outputStatistics" not in began["outputs"][0].get("outputFacets", {})
    lineage = output["facets"]["columnLineage"]
    (total,) = lineage["fields"]["total"]["inputFields"]
    assert (total["name"], total["field"]) == (sales, "price")
    assert [(way["type"], way["subtype"]) for way in total["transformations"]] == [("DIRECT", "AGGREGATION")]
    decided = {one["field"]: [way["subtype"] for way in one["transformations"]] for one in lineage["dataset"]}
    assert decided == {"price": ["FILTER"], "shop": ["GROUP_BY"]}


def test_a_job_that_fails_tells_why(log, sales, tmp_path):
    with pytest.raises(JobExecutionError):
        run(sales, tmp_path / "out", "SELECT 1 / (price - 1.5)::int AS x FROM sales")
    _, ended = log()
    assert ended["eventType"] == "FAIL"
    assert "divide by zero" in ended["run"]["facets"]["errorMessage"]["message"]


def test_nothing_is_told_unless_it_is_wanted(log, sales, tmp_path):
    run(sales, tmp_path / "out", enabled=False)
    assert log() == []


def test_events_go_to_a_server_and_its_absence_is_no_trouble_for_the_job(sales, tmp_path, monkeypatch, caplog):
    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, json.loads(body)["eventType"]))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_words):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    config = tmp_path / "openlineage.yml"
    config.write_text(f"transport: {{type: http, url: 'http://127.0.0.1:{server.server_port}', retry: {{total: 0}}}}\n")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    try:
        run(sales, tmp_path / "out")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert received == [("/api/v1/lineage", "START"), ("/api/v1/lineage", "COMPLETE")]
    assert run(sales, tmp_path / "again").state == "FINISHED"
    assert "no event of OpenLineage was sent" in caplog.text
