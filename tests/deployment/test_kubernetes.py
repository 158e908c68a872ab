"""The manifests and the chart: what Kubernetes' schemas, Helm and kustomize say of them."""

import importlib.util
import shutil
import subprocess

import pytest
import yaml

from engine.config.loader import configuration_from_texts
from tests.deployment.chart import MANIFESTS, PLAIN, helm, plain, rendered
from tests.deployment.pods import of_kind

needs_helm = pytest.mark.skipif(helm() is None, reason="Helm is not installed")
needs_schemas = pytest.mark.skipif(
    importlib.util.find_spec("kubernetes_validate") is None, reason="the schemas of Kubernetes are not installed"
)
#: values of the chart, besides its own
VARIANTS = {
    "as it is": {},
    "history server": {"historyServer.enabled": "true", "service.type": "LoadBalancer"},
    "object store": {"persistence.enabled": "false", "highAvailability.storageDir": "s3://bucket/drey"},
    "IPv6": {"bindHost": "::", "highAvailability.quorum": "[fd00::1]:2181"},
    "placed": {
        **{"taskManager.nodeSelector.disk": "ssd", "taskManager.tolerations[0].key": "batch"},
        **{"env[0].name": "AWS_REGION", "env[0].value": "eu", "envFrom[0].secretRef.name": "keys"},
        **{"config.job\\.priority": "3", "image.pullSecrets[0]": "registry", "allowedHosts[0]": "drey.example.com"},
        **{"taskManager.spill.sizeLimit": "100Gi", "persistence.existingClaim": "other"},
    },
    "TLS": {"tls.enabled": "true", "tls.secretName": "certificates", "historyServer.enabled": "true"},
    "application with TLS": {
        **{"tls.enabled": "true", "application.enabled": "true"},
        "application.script": "print(1)\n",
    },
    "application": {"application.enabled": "true", "application.script": "print(1)\n", "application.taskManagers": "2"},
}


def valid(documents):
    import kubernetes_validate

    for document in documents:
        kubernetes_validate.validate(document, "1.37", strict=True)
    return len(documents)


def documents_of(text):
    return [document for document in yaml.safe_load_all(text) if document]


@needs_schemas
@pytest.mark.parametrize("name", ["drey.yaml", "job.yaml", "namespace.yaml", "zookeeper.yaml"])
def test_the_plain_manifests_are_what_kubernetes_knows(name):
    assert valid(documents_of((MANIFESTS / name).read_text())) >= 1


@needs_schemas
def test_what_kubernetes_does_not_know_is_found():
    """The tests above would pass if nothing were checked."""
    (job,) = of_kind(documents_of((MANIFESTS / "job.yaml").read_text()), "Job").values()
    job["spec"]["template"]["spec"]["containers"][0]["argz"] = ["x"]
    with pytest.raises(Exception, match="argz"):
        valid([job])


@needs_helm
@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_manifests_are_the_chart(name):
    assert (MANIFESTS / name).read_text() == plain(name), "make manifests writes them anew"


@pytest.mark.thorough
@needs_helm
@needs_schemas
@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_the_chart_makes_what_kubernetes_and_drey_know(values):
    documents = documents_of(rendered(values))
    assert valid(documents) >= 2
    (config,) = of_kind(documents, "ConfigMap").values()
    texts = {key: str(value) for key, value in yaml.safe_load(config["data"]["config.yaml"]).items()}
    assert configuration_from_texts(texts).as_texts() == texts
    pods = [each["spec"]["template"]["spec"] for each in documents if "template" in each.get("spec", {})]
    volumes = [{volume["name"] for volume in pod["volumes"]} for pod in pods]
    for pod, there in zip(pods, volumes, strict=True):
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= there
            assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]


@needs_helm
def test_with_tls_processes_have_their_files_and_names_and_are_asked_from_within():
    values = {"tls.enabled": "true", "tls.secretName": "certificates", "historyServer.enabled": "true"}
    documents = documents_of(rendered(values))
    (config,) = of_kind(documents, "ConfigMap").values()
    settings = yaml.safe_load(config["data"]["config.yaml"])
    assert settings["security.ssl.enabled"] is True
    files = {settings[f"security.ssl.{name}"] for name in ("certificate", "key", "ca")}
    assert files == {"/run/tls/tls.crt", "/run/tls/tls.key", "/run/tls/ca.crt"}
    pods = [each["spec"]["template"]["spec"] for each in documents if "template" in each.get("spec", {})]
    assert len(pods) == 3
    for pod in pods:
        (volume,) = [each for each in pod["volumes"] if each["name"] == "tls"]
        assert volume["secret"] == {"secretName": "certificates", "defaultMode": 0o440}
        (container,) = pod["containers"]
        assert {"name": "tls", "mountPath": "/run/tls"} in container["volumeMounts"]
        daemon = container["name"]
        for probe, question in (("startup", "alive"), ("liveness", "alive"), ("readiness", "ready")):
            asked = container[f"{probe}Probe"]
            assert asked["exec"]["command"] == ["probe.sh", daemon, question] and "httpGet" not in asked
            assert asked["timeoutSeconds"] >= 10, "a process has to start for it"
    (host,) = [each for pod in pods for each in pod["containers"][0]["env"] if each["name"] == "DREY_TASKMANAGER_HOST"]
    assert host["value"] == "$(POD_NAME).drey-taskmanager.drey.svc", "a certificate names no address of a pod"


@needs_helm
@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
def test_an_upgrade_of_task_managers_can_wait_until_each_one_is_drained(strategy):
    documents = documents_of(rendered({"taskManager.updateStrategy": strategy}))
    found = of_kind(documents, "StatefulSet")
    assert found["drey-taskmanager"]["spec"]["updateStrategy"] == {"type": strategy}
    assert "updateStrategy" not in found["drey-jobmanager"]["spec"], "another one leads in any case"


@needs_helm
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"jobManager.replica": "3"}, "replica"),
        ({"taskManager.replicas": "0"}, "minimum"),
        ({"taskManager.updateStrategy": "Drain"}, "taskManager/updateStrategy"),
        ({"persistence.size": "many"}, "pattern"),
        ({"application.enabled": "true"}, "application.script is the text of the job"),
    ],
)
def test_values_that_mean_nothing_are_refused(values, text):
    assert text in rendered(values, check=False)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@needs_schemas
def test_kustomize_puts_the_manifests_and_the_secrets_together(tmp_path):
    shutil.copytree(MANIFESTS, tmp_path / "made")
    for name in ("cluster.secret", "read.token"):
        (tmp_path / "made" / name).write_text("a secret of the tests, 32 bytes!")
    words = ["kubectl", "kustomize", tmp_path / "made"]
    documents = documents_of(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert valid(documents) == len(documents)
    assert {each["metadata"].get("namespace") for each in documents if each["kind"] != "Namespace"} == {"drey"}
    assert set(of_kind(documents, "Secret")["drey-secrets"]["data"]) == {"cluster.secret", "read.token"}
    sets = of_kind(documents, "StatefulSet")
    assert set(sets) == {"drey-jobmanager", "drey-taskmanager", "zookeeper"}
    budgets = {
        each["spec"]["selector"]["matchLabels"].get("app.kubernetes.io/component")
        for each in documents
        if each["kind"] == "PodDisruptionBudget"
    }
    assert budgets == {"jobmanager", "taskmanager", None}
