"""Simulates several machines: network namespaces with names and addresses, connected by a bridge."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NETWORK = "10.213.77"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def can_make_hosts() -> bool:
    """Whether this process can create network namespaces, which needs root and the programs ip and unshare."""
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare")):
        return False
    name = f"ramify-probe-{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@dataclass(frozen=True)
class Host:
    """A simulated machine, which shares only the disk with the others."""

    name: str
    namespace: str

    def command(self, line: Sequence[str]) -> list[str]:
        """The command line that runs another command line on this machine."""
        begin = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c", begin, self.name, *line]


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """Simulated machines that can reach each other by these names."""
    unique = f"ramify-{os.getpid()}"
    bridge = f"ram{os.getpid()}"
    known = "127.0.0.1 localhost\n" + "".join(f"{NETWORK}.{k} {name}\n" for k, name in enumerate(names, start=1))
    made = [Host(name, f"{unique}-{name}") for name in names]
    switch = f"{unique}-switch"
    try:
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", bridge, "type", "bridge")
        ip("-n", switch, "link", "set", bridge, "up")
        for k, host in enumerate(made, start=1):
            ip("netns", "add", host.namespace)
            files = Path("/etc/netns") / host.namespace
            files.mkdir(parents=True)
            (files / "hosts").write_text(known)
            cable = f"cable{k}"
            ip("-n", switch, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
            ip("-n", switch, "link", "set", cable, "master", bridge, "up")
            ip("-n", host.namespace, "address", "add", f"{NETWORK}.{k}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "lo", "up")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
        yield made
    finally:
        for namespace in (switch, *(host.namespace for host in made)):
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)
            shutil.rmtree(Path("/etc/netns") / namespace, ignore_errors=True)
