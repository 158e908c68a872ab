"""The Helm chart, rendered; and the plain manifests that are the chart with its own values.

rendered("historyServer.enabled=true") -> text          python -m tests.deployment.chart     writes conf/kubernetes
"""

import re
import shutil
import subprocess

from tests.tidy.imports import ROOT

CHART = ROOT / "conf" / "helm" / "drey"
MANIFESTS = ROOT / "conf" / "kubernetes"
_INSTALLED = ROOT / ".venv" / "helm" / "helm"
EXAMPLE = """import pyarrow as pa
from drey import Environment, col

env = Environment(target="cluster")
numbers = env.from_rows([(n,) for n in range(10)], pa.schema([("n", pa.int64())]))
numbers.filter(col("n") > 6).write_csv("/data/numbers")
env.execute("numbers")
"""
#: plain manifests: what they begin with, and the values that they are the chart of
PLAIN = {
    "drey.yaml": ("A cluster: two JobManagers, of which ZooKeeper elects one, and two TaskManagers.", {}),
    "job.yaml": (
        "One job with a JobManager and a TaskManager of its own, in one pod: kubectl apply -f job.yaml\n"
        "# The text of the job is in the ConfigMap.",
        {"application.enabled": "true", "persistence.existingClaim": "drey-data", "application.script": EXAMPLE},
    ),
}


def helm():
    """Return the command, or None where there is none."""
    return str(_INSTALLED) if _INSTALLED.exists() else shutil.which("helm")


def rendered(values=None, name="drey", check=True):
    """Return the manifests of the chart."""
    words = [helm(), "template", name, CHART, "--namespace", "drey"]
    for key, value in (values or {}).items():
        words += ["--set-file", f"{key}=/dev/stdin"] if "\n" in value else ["--set", f"{key}={value}"]
    text = next((value for value in (values or {}).values() if "\n" in value), "")
    done = subprocess.run(words, check=False, capture_output=True, text=True, input=text)
    if not check:
        return done.stderr
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain(name):
    """Return the text of a plain manifest."""
    head, values = PLAIN[name]
    text = rendered(values, "drey" if name == "drey.yaml" else "drey-job")
    text = re.sub(r"(?m)^# Source: .*\n|^ +checksum/config: .*\n|[ \t]+$", "", text)
    text = re.sub(r"(?m)^ +annotations:\n(?= +spec:)", "", text)
    return f"# {head}\n# Rendered of conf/helm/drey: make manifests\n{text}"


if __name__ == "__main__":
    for each in PLAIN:
        (MANIFESTS / each).write_text(plain(each))
