#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""xr-perf between two guests on a wire that loses packets: soft-RoCE sends them again, and no byte may be wrong.

    two_hosts.py serve     on 10.77.0.1: one server a mode, until the other side is done
    two_hosts.py test      on 10.77.0.2: the tests, against those servers
"""

import socket
import subprocess
import sys
import time

from lab import RdmaClient, RdmaServer
from harness import CLIENT_CPU, MODES, SERVER_CPU, Failure, expect, expect_equal, main, test

SERVER, CONTROL_PORT, FIRST_PORT = "10.77.0.1", 7999, 8000
LOSS = "1%"


def lose_packets():
    subprocess.run(("modprobe", "sch_netem"), check=True)
    subprocess.run(("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", LOSS), check=True)


def hardware_counter(name):
    with open(f"/sys/class/infiniband/rxe0/ports/1/hw_counters/{name}", encoding="ascii") as file:
        return int(file.read())


# ---- host 1 ----


class FixedServer(RdmaServer):
    """A server where the other host can find it."""

    def __init__(self, mode):
        super().__init__("--listen", f"{SERVER}:{FIRST_PORT + MODES.index(mode)}", mode=mode, cpu=SERVER_CPU)


def serve():
    lose_packets()
    servers = [FixedServer(mode) for mode in MODES]
    with socket.create_server((SERVER, CONTROL_PORT)) as control:
        control.settimeout(400)
        connection, _ = control.accept()
        with connection:
            connection.settimeout(400)
            connection.recv(1)
    for server in servers:
        expect(server.stop_clean()["rdma_connections"] > 0, "a server without an RDMA connection")
    expect(hardware_counter("rcvd_seq_err") > 0, "no packet was lost")


# ---- host 2 ----


def await_servers():
    """Holds the control connection, whose end tells host 1 that all is done."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return socket.create_connection((SERVER, CONTROL_PORT), 5)
        except OSError:
            expect(time.monotonic() < deadline, "the servers did not come up")
            time.sleep(0.5)


def echo_to(mode):
    for size, depth, calls in ((0, 1, 50), (512, 16, 400), (8161, 16, 200), (300000, 4, 12)):
        client = RdmaClient(f"{SERVER}:{FIRST_PORT + MODES.index(mode)}", "--attachment_size", size, "--queue_depth",
                            depth, "--test_iterations", calls, mode=mode, cpu=CLIENT_CPU)
        expect_equal(client.finish_clean()["calls"], calls, "calls")


@test
def a_polling_pair_loses_nothing():
    echo_to("poll")


@test
def an_event_driven_pair_loses_nothing():
    echo_to("event")


@test
def an_adaptive_pair_loses_nothing():
    echo_to("adaptive")


@test
def packets_were_lost():
    expect(hardware_counter("completer_retry_err") > 0, "nothing was ever sent again")


def run():
    role = sys.argv.pop() if len(sys.argv) == 2 else None
    if role == "serve":
        try:
            serve()
        except Failure as what:
            sys.exit(str(what))
    elif role == "test":
        lose_packets()
        with await_servers():
            main()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    run()
