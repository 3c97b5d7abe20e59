# SPDX-License-Identifier: Apache-2.0
"""What the lab's tests stand on: the harness of tests/integration, on an RDMA device, and the peer of foreign make.

tests/lab/check runs them. LAB_DEVICE names the device (rxe0), LAB_ADDRESS an address of its network interface
(10.77.0.1). LAB_GUEST is set in a guest of the lab, which may be changed: interfaces are added and taken down.
"""

import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import harness
from harness import CLIENT_CPU, Client, Program, SERVER_CPU, Server, expect, expect_equal

DEVICE = os.environ.get("LAB_DEVICE", "rxe0")
ADDRESS = os.environ.get("LAB_ADDRESS", "10.77.0.1")
IN_GUEST = "LAB_GUEST" in os.environ

# An emulated machine is slow, and sometimes slower.
harness.SLACK = 6

# So is a handshake with one: none may end on TCP because of that.
PATIENCE = ("--rdma_handshake_timeout_ms", 20000)

BLOCKS = ("default", "large", "huge")

COMPLAINT = re.compile(r"^\S+ (error|warning) .*$", re.M)


def expect_no_complaint(program):
    """Neither an error nor a warning in the program's log."""
    complaint = COMPLAINT.search(program.stderr.so_far())
    if complaint:
        program.fail(f"it complains: {complaint.group()}")


def bind(address):
    return f"[{address}]:0" if ":" in address else f"{address}:0"


class RdmaServer(Server):
    """An xr-perf server at the device's address."""

    def __init__(self, *args, block="default", address=ADDRESS, **options):
        super().__init__("--rdma_recv_block_type", block, *PATIENCE, *args, listen=bind(address), **options)

    def stop_clean(self):
        """Ends it; it must have nothing to complain of, and no connection or wake-up lost."""
        counters = self.stop()
        expect_no_complaint(self)
        expect_equal(self.result()["errors"], 0, "the server's errors")
        for name in ("conns_live", "conns_failed", "rdma_errors", "reactor_wakes_rescued"):
            expect_equal(counters[name], 0, f"the server's {name}")
        return counters


class RdmaClient(Client):
    """An xr-perf client that compares what comes back."""

    def __init__(self, address, *args, block="default", **options):
        super().__init__(address, "--rdma_recv_block_type", block, "--echo_attachment", "--rpc_timeout_ms", 20000,
                         *PATIENCE, *args, **options)

    def finish_clean(self, transport="rdma"):
        """Waits for its end; the result, which must be one of success over this transport."""
        self.finish(timeout=30)
        expect_no_complaint(self)
        result, counters = self.result(), self.counters()
        expect_equal(result["errors"], 0, "errors")
        expect_equal(result["transport"], transport, f"transport (\"{result['fallback_reason']}\")")
        if transport == "rdma":
            expect_equal(result["fallback_reason"], "", "reason for TCP")
        for name in ("conns_live", "conns_failed", "rdma_errors", "reactor_wakes_rescued"):
            expect_equal(counters[name], 0, f"the client's {name}")
        return result


class Peer(Program):
    """The foreign peer in one of its roles."""

    def __init__(self, role, *args, cpu, address):
        super().__init__("--role", role, "--address", address, "--device", DEVICE, "--cpu", cpu, *args,
                         name=os.path.join(ROOT, "tests", "lab", "peer", "peer.py"))

    def counts(self):
        """What it counted, once it has ended well."""
        self.finish(timeout=30)
        return json.loads(self.stdout.text().splitlines()[-1])


class PeerServer(Peer):
    def __init__(self, *args, cpu=SERVER_CPU):
        super().__init__("server", *args, cpu=cpu, address=bind(ADDRESS))
        self.address = self.wait_stdout(r"^listening on (\S+)$").group(1)


class PeerClient(Peer):
    def __init__(self, address, *args, cpu=CLIENT_CPU):
        super().__init__("client", *args, cpu=cpu, address=address)
