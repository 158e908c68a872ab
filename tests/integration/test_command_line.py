"""``flink-run`` as a program: what it prints where, its exit codes, and which setting wins."""

import json
import re
import textwrap

import pytest

from engine.examples.generate_instruments import generate
from tests.integration.conftest import ROOT

SKEW_JOIN = ROOT / "engine" / "examples" / "skew_join.py"
FLINK_RUN = ("-m", "engine.cli.main")
SUBTASK_KEYS = {"index", "rows_in", "rows_out", "bytes_in", "bytes_out", "spilled_bytes"}

JOB = """
    import sys
    import pyarrow as pa
    from engine import Environment, col, sum_
    env = Environment()
    data = env.from_arrow(pa.table({"a": range(1000), "b": [n % 7 for n in range(1000)]}))
    data.group_by("b").agg(total=sum_(col("a"))).write_csv("out")
    print("before", *sys.argv[1:])
    result = env.execute("little job")
    print("after", result.state)
"""


@pytest.fixture
def job(tmp_path):
    def write(text=JOB, name="job.py"):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return name

    return write


@pytest.mark.quick
def test_submit_prints_the_job_id_and_at_the_end_state_and_runtime(run, job, tmp_path):
    done = run(*FLINK_RUN, "job", "submit", job(), "--x", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "before --x 1" in lines
    assert "after FINISHED" in lines
    (submitted,) = [
        re.fullmatch(r"Job has been submitted with JobID ([0-9a-f]{32})", line) for line in lines if "sub" in line
    ]
    tail = "\n".join(lines[lines.index(submitted[0]) + 1 :])
    assert "FINISHED" in tail
    assert re.search(r"(?i)runtime:? \d+ ms", tail)
    assert done.stderr == ""
    assert (tmp_path / "out").is_dir()


def test_the_short_form_and_the_script_alone_do_the_same(run, job, tmp_path):
    done = run(*FLINK_RUN, job(), "x")
    assert done.returncode == 0, done.stderr
    assert "Job has been submitted with JobID" in done.stdout
    done = run(*FLINK_RUN, "-p", "1", job(JOB.replace('"out"', '"out1"')), "x")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out1").iterdir()] == ["part-00000.csv"]
    alone = run(job(JOB.replace('"out"', '"out2"')))
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == "before\nafter FINISHED\n"
    assert (tmp_path / "out2").is_dir()


@pytest.mark.quick
def test_json_is_exactly_one_object_on_stdout(run, job):
    done = run(*FLINK_RUN, "job", "submit", "--json", job())
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"job_id", "state", "runtime_ms", "bad_rows", "stores", "vertices"}
    assert re.fullmatch("[0-9a-f]{32}", report["job_id"])
    assert report["state"] == "FINISHED"
    assert isinstance(report["runtime_ms"], int)
    for vertex in report["vertices"]:
        assert set(vertex) == {"name", "subtasks"}
        assert [subtask["index"] for subtask in vertex["subtasks"]] == list(range(len(vertex["subtasks"])))
        assert all(set(subtask) == SUBTASK_KEYS for subtask in vertex["subtasks"])
    assert sum(subtask["rows_out"] for subtask in report["vertices"][0]["subtasks"]) > 0
    assert "before" in done.stderr
    assert "submitted with JobID" in done.stderr


def test_json_of_a_failed_job_is_one_object_too(run, job):
    script = job(JOB.replace('sum_(col("a"))', 'sum_(col("a") // (col("a") - 5))'))
    done = run(*FLINK_RUN, "job", "submit", "--json", script)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["state"] == "FAILED"
    assert set(report) == {"job_id", "state", "runtime_ms", "bad_rows", "vertices"}


@pytest.mark.quick
def test_a_failing_job_exits_with_1_and_its_error_begins_with_the_cause(run, job, tmp_path):
    script = job(JOB.replace('sum_(col("a"))', 'sum_(col("a") // (col("a") - 5))'))
    done = run(*FLINK_RUN, script)
    assert done.returncode == 1
    assert "zero" in done.stderr.lower()
    assert len(done.stderr.splitlines()) <= 17, done.stderr
    assert "Traceback" not in done.stderr
    assert "after" not in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "spill"]
    verbose = run(*FLINK_RUN, "job", "submit", "--verbose", script)
    assert verbose.returncode == 1
    assert "Traceback" in verbose.stderr


@pytest.mark.parametrize(
    ("ending", "code"),
    [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('sorry')", 1), ("raise ValueError('mine')", 1), ("", 0)],
    ids=["7", "0", "text", "exception", "end"],
)
def test_the_programs_own_exit_code_is_passed_through(run, job, ending, code):
    done = run(*FLINK_RUN, job(f"import sys\nprint('here')\n{ending}\n"))
    assert done.returncode == code
    assert done.stdout == "here\n"
    if "ValueError" in ending:
        assert "ValueError: mine" in done.stderr
        assert "job.py" in done.stderr
        assert "runpy" not in done.stderr


#: runs each command line of a list in a copy of one process; prints a JSON list of [exit code, output, errors]
EACH = """
import json, os, sys, tempfile
import engine.targets.local
from engine.cli.main import main

done = []
for words, variables in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.environ.update(variables)
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            sys.exit(main(words))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        done.append([code, *(file.seek(0) or file.read() for file in (output, errors))])
print(json.dumps(done))
"""


@pytest.fixture
def run_each(run):
    """Return a function that runs command lines, [words, variables], one after the other."""

    def run_them(*lines):
        done = run("-c", EACH, json.dumps(lines))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run_them


REFUSED = [
    ["job", "submit", "--no-such-option", "job.py"],
    ["job", "submit"],
    ["job", "jump"],
    ["job", "submit", "missing.py"],
    ["job", "submit", "-D", "nonsense", "job.py"],
    ["job", "submit", "-D", "no.such.key=1", "job.py"],
    ["job", "submit", "-p", "many", "job.py"],
    ["job", "submit", "-p", "0", "job.py"],
    ["job", "submit", "-t", "moon", "job.py"],
    ["job", "submit", "-t", "cluster", "job.py"],
    ["job", "submit", "-d", "job.py"],
    ["job", "list"],
    ["job", "status", "0" * 32],
    ["ha", "gc", "--older-than", "soon"],
    ["ha", "gc", "/data/reports"],
]


def test_what_cannot_be_done_exits_with_1_and_one_clear_line(run, run_each, job, tmp_path):
    job()
    for words, (code, output, errors) in zip(REFUSED, run_each(*([words, {}] for words in REFUSED)), strict=True):
        assert code == 1, (words, output)
        assert errors, words
        assert "Traceback" not in errors, words
        assert len(errors.splitlines()) <= 5, (words, errors)
    assert not (tmp_path / "out").exists()
    alone = run(*FLINK_RUN, *REFUSED[0])
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "--no-such-option" in alone.stderr


def test_info_shows_the_plan_and_runs_nothing(run, job, tmp_path):
    done = run(*FLINK_RUN, "job", "info", job())
    assert done.returncode == 0, done.stderr
    assert "aggregate" in done.stdout.lower()
    assert "rows" in done.stdout
    assert "after" not in done.stdout
    assert not (tmp_path / "out").exists()


def test_the_main_job_by_command_line_with_every_join_type(run_each, tmp_path):
    generate(4000, tmp_path / "data", 5, "csv")
    jobs = {
        join_type: [str(SKEW_JOIN), "--input", "data", "--out", f"out-{join_type}", "--join-type", join_type]
        for join_type in ("auto", "normal", "broadcast")
    }
    lines = [*jobs.values(), jobs["broadcast"], ["job", "info", *jobs["broadcast"]]]
    *ran, again, info = run_each(*([words, {}] for words in lines))
    sizes = set()
    for join_type, (code, _, errors) in zip(jobs, ran, strict=True):
        assert code == 0, errors
        rows = sorted(
            line for part in (tmp_path / f"out-{join_type}").iterdir() for line in part.read_text().splitlines()
        )
        assert len(rows) == 4000
        sizes.add("\n".join(rows))
    assert len(sizes) == 1
    assert again[0] == 1
    assert "exists" in again[2]
    assert info[0] == 0, info[2]
    assert "BROADCAST" in info[1]


# ---- settings

SHOW_PARALLELISM = """
    import pyarrow as pa
    from engine import Environment, count
    env = Environment({config})
    env.from_arrow(pa.table({{"a": range(5000)}})).group_by("a").agg(n=count()).write_csv("out", overwrite=True)
    result = env.execute()
    print("subtasks", max(len(vertex.subtasks) for vertex in result.vertices))
"""


def subtasks(done):
    code, output, errors = done
    assert code == 0, errors
    return int(re.search(r"subtasks (\d+)", output)[1])


def test_the_script_beats_options_beat_variables_beat_the_file(run_each, job, tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "config.yaml").write_text("parallelism:\n  default: 3\n")
    plain = job(SHOW_PARALLELISM.format(config=""), "plain.py")
    setting = job(SHOW_PARALLELISM.format(config='config={"parallelism.default": 6}'), "setting.py")
    lines = [
        [plain],
        ["job", "submit", "-D", "parallelism.default=5", plain],
        ["job", "submit", "-p", "5", plain],
        ["job", "submit", "-p", "5", setting],
        ["config", "show"],
    ]
    variables = {
        "DREY_CONF_DIR": str(conf),
        "DREY_PARALLELISM_DEFAULT": "4",
        "DREY_PARALLELISM_MAX_PER_PROCESSOR": "64",
    }
    *jobs, shown = run_each(*([words, variables] for words in lines))
    assert [subtasks(done) for done in jobs] == [4, 5, 5, 6]
    assert re.search(r"(?m)^parallelism\.default: 4 .*DREY_PARALLELISM_DEFAULT", shown[1]), shown


def test_the_file_beats_the_default_and_show_says_where_a_value_comes_from(run, tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "config.yaml").write_text("taskmanager.memory.managed.size: 17mb\n")
    shown = run(*FLINK_RUN, "config", "show", DREY_CONF_DIR=str(conf))
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"(?m)^taskmanager\.memory\.managed\.size: 17mb .*config\.yaml", shown.stdout)
    assert re.search(r"(?m)^debug\.force-spill: false .*default", shown.stdout)
    described = run(*FLINK_RUN, "config", "show", "--describe", DREY_CONF_DIR=str(conf))
    assert len(described.stdout.splitlines()) > len(shown.stdout.splitlines())


def test_a_wrong_configuration_file_is_an_error_that_names_it(run_each, job, tmp_path):
    texts = ["no.such.key: 1\n", "parallelism.default: [1, 2]\n", "a: b: c\n", "parallelism.default: many\n"]
    lines = []
    for number, text in enumerate(texts):
        conf = tmp_path / f"conf{number}"
        conf.mkdir()
        (conf / "config.yaml").write_text(text)
        lines.append([[job()], {"DREY_CONF_DIR": str(conf)}])
    for text, (code, _, errors) in zip(texts, run_each(*lines), strict=True):
        assert code == 1, text
        assert "config.yaml" in errors or "parallelism.default" in errors, text
        assert "Traceback" not in errors, text


def test_py_files_are_importable_by_script_and_functions(run, job, tmp_path):
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "extra.py").write_text("def twice(n):\n    return 2 * n\n")
    script = job(
        """
        import pyarrow as pa
        from engine import Environment
        from extra import twice
        schema = pa.schema([("a", pa.int64())])
        env = Environment()
        print(env.from_rows([(1,), (2,)], schema).map(lambda row: (twice(row.a),), schema).sort("a").collect()[1][0])
        """
    )
    done = run(*FLINK_RUN, "job", "submit", "--py-files", "lib/extra.py", script)
    assert done.returncode == 0, done.stderr
    assert "4" in done.stdout.splitlines()


def test_the_name_of_a_job_on_the_command_line(run, job):
    done = run(*FLINK_RUN, "job", "submit", "-n", "another name", job())
    assert done.returncode == 0, done.stderr


def test_help_is_fast_and_complete(run):
    done = run(*FLINK_RUN, "job", "submit", "--help")
    assert done.returncode == 0
    for option in ("-t", "-p", "-d", "-D", "-m", "-n", "--py-files", "--json", "--verbose"):
        assert option in done.stdout


FORGOTTEN = """
    import pyarrow as pa
    from engine import Environment

    def main():
        with Environment() as env:
            data = env.from_arrow(pa.table({"a": [1]}))
            data.write_csv("out")
            data.write_parquet("out2")

    main()
"""


def test_a_script_that_declares_outputs_and_executes_nothing_fails_and_says_so(run, job, tmp_path):
    for command in (("job", "submit"), ("job", "submit", "--json"), ("job", "info")):
        done = run(*FLINK_RUN, *command, job(FORGOTTEN))
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: nothing was written to {tmp_path / 'out'} and 1 more: write_csv (")
        assert "job.py, line 8" in done.stderr
        assert "call env.execute()" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert json.loads(run(*FLINK_RUN, "--json", job(FORGOTTEN)).stdout)["state"] == "FAILED"


def test_without_flink_run_a_forgotten_execute_is_warned_of_when_the_program_ends(run, job):
    done = run(job(FORGOTTEN))
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr.count("DreyWarning: nothing was written to") == 1
    assert "job.py:8: " in done.stderr


def test_a_program_that_executes_or_fails_is_not_warned(run, job):
    assert run(job()).stderr == ""
    failed = run(job(f"{FORGOTTEN.rstrip()}\n    raise ValueError('its own')\n", "failed.py"))
    assert "ValueError: its own" in failed.stderr
    assert "nothing was written" not in failed.stderr
