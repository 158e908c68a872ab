"""The pods of Kubernetes' manifests without Kubernetes: their containers as processes of the image, with their volumes.

    pods = Pods(documents, image, folder, {"drey-jobmanager-0": "drey-jobmanager", ...})    pods and whose they are
    pods.keep("drey-jobmanager-0", ())      pods.is_ready("drey-jobmanager-0")      its readiness probe, as kubelet asks

What a container gets is what the manifest says: command and arguments, variables with $(NAME) filled in, ConfigMaps and
Secrets as folders of root's that the group of the pod reads, an emptyDir that this group may write.
"""

import http.client
import os
import re

from tests.deployment.machines import Machines

_NAMESPACE = "drey"


def of_kind(documents, kind):
    return {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}


class Pods(Machines):
    def __init__(self, documents, image, folder, sets):
        self._configs = of_kind(documents, "ConfigMap")
        owners = of_kind(documents, "StatefulSet") | of_kind(documents, "Job")
        self._specs = {pod: owners[name]["spec"]["template"]["spec"] for pod, name in sets.items()}
        services = {pod: owners[name]["spec"].get("serviceName") for pod, name in sets.items()}
        names = {pod: [f"{pod}.{service}.{_NAMESPACE}.svc"] if service else [] for pod, service in services.items()}
        super().__init__({**names, "zookeeper": ()}, image, folder)
        self._group = self.owner[1]

    def _given(self, path, mode):
        os.chown(path, 0, self._group)
        path.chmod(mode)
        return path

    def _volume(self, pod, volume):
        is_shared = "persistentVolumeClaim" in volume
        place = self.folder / "volumes" / (volume["name"] if is_shared else f"{pod}-{volume['name']}")
        if place.exists():
            return place
        place.mkdir(parents=True)
        files = {}
        if "configMap" in volume:
            files = self._configs[volume["configMap"]["name"]]["data"]
        elif "secret" in volume:
            names = ("cluster.secret", "read.token")
            files = {name: f"{name} of the tests, which all pods have\n" for name in names}
        for name, text in files.items():
            (place / name).write_text(text)
            self._given(place / name, volume.get("secret", {}).get("defaultMode", 0o644))
        return self._given(place, 0o2777)

    def _variables(self, pod, container):
        fields = {"metadata.name": pod, "status.podIP": self.network.address(pod)}
        values = {}
        for each in container.get("env", []):
            value = each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            values[each["name"]] = re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], value)
        return values

    def begin(self, place, **arguments):
        """Begin a container: that of a pod, or of several the one that is named, as POD.CONTAINER."""
        pod, _, name = place.partition(".")
        spec = self._specs[pod]
        containers = {each["name"]: each for each in [*spec["containers"], *spec.get("initContainers", [])]}
        container = containers[name or spec["containers"][0]["name"]]
        rights, own = container["securityContext"], spec["securityContext"]
        assert rights["readOnlyRootFilesystem"] and rights["capabilities"] == {"drop": ["ALL"]}
        assert (own["runAsUser"], own["fsGroup"]) == self.owner
        volumes = {volume["name"]: self._volume(pod, volume) for volume in spec["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        mounts.pop("/tmp")  # the image's processes have one of their own
        return self.image.start(
            container["args"],
            volumes={"/etc/hosts": self.folder / "hosts", **mounts},
            environment=self._variables(pod, container),
            prefix=self.network.command(pod),
            **arguments,
        )

    def probe(self, pod, kind):
        """Return the status that a probe of a pod gets, at the address of the pod, without a credential."""
        (container,) = self._specs[pod]["containers"]
        asked = container[kind]["httpGet"]
        port = next(each["containerPort"] for each in container["ports"] if each["name"] == asked["port"])
        with self.network.inside("zookeeper"):
            connection = http.client.HTTPConnection(self.network.address(pod), port, timeout=10)
            try:
                connection.request("GET", asked["path"])
                return connection.getresponse().status
            except OSError:
                return 0
            finally:
                connection.close()

    def is_ready(self, pod):
        """Whether the readiness probe of a pod passes."""
        return self.probe(pod, "readinessProbe") == http.client.OK
