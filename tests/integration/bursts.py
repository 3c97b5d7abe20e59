# SPDX-License-Identifier: Apache-2.0
"""Bursts and silences of random length between a client and a server, with nothing that would rescue a lost wake-up.

XR_BURST_S says how many seconds they go on (5).
"""

import os

from harness import expect, expect_equal

SECONDS = int(os.environ.get("XR_BURST_S", "5"))

NO_CAP = ("--wait-cap-ms", 0)
BURSTS = (*NO_CAP, "--thread_num", 2, "--queue_depth", 4, "--attachment_size", 1000, "--burst_calls", 40,
          "--silence_us", 4000, "--test_seconds", SECONDS)


def expect_wakes(name, counters):
    """Enough of them, none lost, and hardly one for nothing."""
    wakes = sum(counters[f"reactor_wakes_{cause}"] for cause in ("fd", "timer", "cap"))
    empty, found = counters["reactor_wakes_empty"], counters["reactor_armed_found"]
    print(f"        {name}: {wakes} wakes, {empty} of them empty; {found} sleeps called off by what came after arming")
    expect(wakes > 20 * SECONDS, f"the {name} woke up {wakes} times only")
    expect_equal(counters["reactor_wakes_cap"], 0, f"wakes by the cap of the {name}")
    expect_equal(counters["reactor_wakes_rescued"], 0, f"lost wake-ups of the {name}")
    expect(empty * 100 < wakes, f"{empty} of {wakes} wakes of the {name} were empty")


def expect_bursts(server, client, result):
    """Of a client that has ended, with its result."""
    expect_equal(result["errors"], 0, "errors")
    expect(result["calls"] > 100 * SECONDS, f"{result['calls']} calls in {SECONDS} s")
    expect_wakes("server", server.stop())
    expect_wakes("client", client.counters())
