#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""An idle RDMA connection costs nothing where its lcore may sleep."""

import time

from lab import PeerClient, RdmaServer
from harness import expect, expect_equal, main, test

IDLE_S = 5
CPU_LIMIT_S = 0.1


def expect_no_wake(mode):
    server = RdmaServer(mode=mode)
    client = PeerClient(server.address, "--messages", 100, "--idle", 3600)
    client.wait_stdout("^resting$")
    # An adaptive lcore spins a little before it sleeps, and an emulated one takes its time.
    time.sleep(2)
    switches, cpu = server.switches(), server.cpu_seconds()
    time.sleep(IDLE_S)
    expect_equal(server.switches() - switches, 0, f"sleeps begun in {IDLE_S} s")
    expect(server.cpu_seconds() - cpu < CPU_LIMIT_S, f"{server.cpu_seconds() - cpu:.3f} s of CPU time")
    client.expect_alive()
    client.kill()
    counters = server.stop()
    # A stop has timers of its own.
    for name in ("reactor_wakes_cap", "reactor_wakes_rescued"):
        expect_equal(counters[name], 0, name)
    expect(counters["reactor_sleep_us"] >= IDLE_S * 1000000, f"{counters['reactor_sleep_us']} us asleep")


@test
def an_event_driven_lcore_sleeps():
    expect_no_wake("event")


@test
def an_adaptive_lcore_sleeps():
    expect_no_wake("adaptive")


if __name__ == "__main__":
    main()
