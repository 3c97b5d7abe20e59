# SPDX-License-Identifier: Apache-2.0
"""Memory of NUMA nodes as an operator deals it out: huge pages reserved, and nodes closed to a process.

Only a guest of the lab is changed, and what was there before comes back at the end of each with-block.
"""

import contextlib
import glob
import os
import re

from lab import IN_GUEST
from harness import CPUS, Skip, expect_equal

NODES = "/sys/devices/system/node"
CGROUPS = "/sys/fs/cgroup"
GROUP = CGROUPS + "/xr-lab"


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{value}\n")


def _file(node, name):
    return f"{NODES}/node{node}/hugepages/hugepages-2048kB/{name}"


def cpus_of_nodes():
    """The first processor that this process may use of each node."""
    first = {}
    for cpu in reversed(CPUS):
        for link in glob.glob(f"/sys/devices/system/cpu/cpu{cpu}/node[0-9]*"):
            first[int(re.search(r"node(\d+)$", link).group(1))] = cpu
    return dict(sorted(first.items()))


def two_nodes():
    """(node, processor) of the first two nodes."""
    nodes = list(cpus_of_nodes().items())
    if not IN_GUEST or len(nodes) < 2:
        raise Skip("needs a guest of two NUMA nodes")
    return nodes[:2]


def free_pages(node):
    """2 MiB pages that nobody uses."""
    return int(_read(_file(node, "free_hugepages")))


@contextlib.contextmanager
def reserved(counts):
    """2 MiB pages by node: {0: 64, 1: 0}."""
    if not IN_GUEST:
        raise Skip("reserves huge pages, and only a guest of the lab is changed")
    before = {node: _read(_file(node, "nr_hugepages")) for node in counts}
    try:
        for node, count in counts.items():
            _write(_file(node, "nr_hugepages"), count)
            expect_equal(free_pages(node), count, f"free huge pages of node {node}")
        yield
    finally:
        for node, count in before.items():
            _write(_file(node, "nr_hugepages"), count)


@contextlib.contextmanager
def memory_from(node):
    """Gives a wrapper for programs that get memory of this node only, wherever they run."""
    mounted = not os.path.exists(CGROUPS + "/cgroup.controllers")
    if mounted and os.system(f"mount -t cgroup2 none {CGROUPS}") != 0:
        raise Skip("control groups can't be mounted")
    try:
        _write(CGROUPS + "/cgroup.subtree_control", "+cpuset")
        os.makedirs(GROUP, exist_ok=True)
        _write(GROUP + "/cpuset.mems", node)
        yield ("sh", "-c", f'echo $$ >{GROUP}/cgroup.procs && exec "$@"', "sh")
    finally:
        os.rmdir(GROUP)
        if mounted:
            os.system(f"umount {CGROUPS}")
