"""The services of compose.yaml without Docker Compose: processes of the image in network namespaces, with their names.

    with Composed(compose_file, image, folder) as composed:
        composed.up(["jobmanager-1", ...])        composed.run("client", ["flink-run", ...])

Volumes are folders, secrets files of the user of the image; one without a source is a new file system in memory.
"""

import os
import subprocess

import yaml

from tests.deployment.machines import WAIT_S, Machines


class Composed(Machines):
    def __init__(self, file, image, folder):
        document = yaml.safe_load(file.read_text())
        self.services = document["services"]
        super().__init__(dict.fromkeys(self.services, ()), image, folder)
        for name in ("volumes", "secrets"):
            (folder / name).mkdir(mode=0o755)
        for name in document["secrets"]:
            path = folder / "secrets" / name
            path.write_text(os.urandom(32).hex())
            path.chmod(0o600)
            os.chown(path, *self.owner)

    def _volumes(self, service):
        volumes = {"/etc/hosts": self.folder / "hosts"}
        volumes |= {f"/run/secrets/{name}": self.folder / "secrets" / name for name in service.get("secrets", [])}
        for text in service.get("volumes", []):
            source, _, target = text.removesuffix(":ro").rpartition(":")
            volumes[target] = self._volume(source) if source else None
        return volumes

    def _volume(self, source):
        if source.startswith("."):
            return self.folder / source
        place = self.folder / "volumes" / source
        if not place.exists():  # a new volume has the owner of the image's folder
            place.mkdir(mode=0o700)
            os.chown(place, *self.owner)
        return place

    def begin(self, name, command=(), **arguments):
        """Begin the process of a service, or another command as that service."""
        service = self.services[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"], f"{name} has rights that are not taken away"
        return self.image.start(
            command or service.get("command", ()),
            volumes=self._volumes(service),
            environment={key: str(value) for key, value in service.get("environment", {}).items()},
            prefix=self.network.command(name),
            **arguments,
        )

    def up(self, names):
        """Start services."""
        for name in names:
            self.keep(name, ())

    def run(self, name, command):
        """Run a command as a service to its end."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        process = self.begin(name, command, text=True, **pipes)
        said, _ = process.communicate(timeout=WAIT_S)
        return process.returncode, said

    def is_healthy(self, name):
        """Run the healthcheck of a service in its network; return whether it passes."""
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.run(name, command)[0] == 0

    def wait_until_healthy(self, names):
        """Wait until the healthchecks of services pass."""
        for name in names:
            self.wait_until(lambda name=name: self.is_healthy(name), "health", name)
