# SPDX-License-Identifier: Apache-2.0
"""What the lab's tests stand on: the harness of tests/integration, on an RDMA device, and the peer of foreign make.

LAB_DEVICE names the device (rxe0), LAB_ADDRESS an address of its network interface (10.77.0.1). LAB_OWN=1 says that the
machine is the lab's own and may be changed: interfaces are added and taken down.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import harness  # noqa: E402
from harness import CLIENT_CPU, Program, SERVER_CPU, expect, expect_equal  # noqa: E402

DEVICE = os.environ.get("LAB_DEVICE", "rxe0")
ADDRESS = os.environ.get("LAB_ADDRESS", "10.77.0.1")
OWN = os.environ.get("LAB_OWN") == "1"

# An emulated machine is slow, and sometimes slower.
harness.SLACK = 6


class Peer(Program):
    """The foreign peer in one of its roles."""

    def __init__(self, role, *args, cpu, address=f"{ADDRESS}:0"):
        super().__init__("--role", role, "--address", address, "--device", DEVICE, "--cpu", cpu, *args,
                         name=os.path.join(ROOT, "tests", "lab", "peer", "peer.py"))

    def counts(self):
        """What it counted, once it has ended well."""
        self.finish(timeout=30)
        return json.loads(self.stdout.text().splitlines()[-1])


class PeerServer(Peer):
    def __init__(self, *args, cpu=SERVER_CPU):
        super().__init__("server", *args, cpu=cpu)
        self.address = self.wait_stdout(r"^listening on (\S+)$").group(1)


class PeerClient(Peer):
    def __init__(self, address, *args, cpu=CLIENT_CPU):
        super().__init__("client", *args, cpu=cpu, address=address)
