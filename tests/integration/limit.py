# SPDX-License-Identifier: Apache-2.0
"""A pool at its limit, for any transport: connections that do not read their answers, beside others that do.

limit_test.py runs it over TCP, tests/lab/limit_test.py over RDMA.
"""

import os
import re
import signal

from harness import BUILD, CLIENT_CPU, Program, expect, expect_equal

POOL_MIB = 64
POOL = f"--pool_max_mb={POOL_MIB}"
CONNECTIONS, DEAF = 64, 8


class LateReader(Program):
    """Connections whose answers are read when read() is called, and compared then."""

    def __init__(self, address, *args, connections=DEAF):
        super().__init__("-l", CLIENT_CPU, "--port", "default,mode=event", "--server", address, "--connections",
                         connections, *args, name=os.path.join(BUILD, "tests", "integration", "late_reader"))
        self.connections = connections

    def wait_until_stuck(self):
        self.wait_stdout(r"^stuck with", timeout=30)

    def read(self):
        self.signal(signal.SIGUSR1)

    def answers(self, timeout):
        self.finish(timeout=timeout)
        return int(re.search(r"^(\d+) answers compared$", self.stdout.text(), re.M).group(1))


def resident_mib(program):
    with open(f"/proc/{program.pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmRSS:\s*(\d+) kB", status.read(), re.M).group(1)) >> 10


def expect_within_the_pool(counters):
    """Nothing was lost, and the cap held."""
    for name in ("conns_live", "conns_failed", "conns_given_up", "conn_messages_too_large"):
        expect_equal(counters[name], 0, f"the server's {name}")
    expect(counters["mem_region_bytes"] <= POOL_MIB << 20, f"{counters['mem_region_bytes'] >> 20} MiB of regions")


def calls_beside(server, make_client, reader=None):
    """The rate of the connections that read, and what the server's process holds then."""
    if reader:
        reader.wait_until_stuck()
    client = make_client(server.address, "--thread_num", CONNECTIONS - DEAF)
    client.finish(timeout=60)
    result = client.result()
    expect_equal(result["errors"], 0, "errors")
    expect(result["calls"] >= CONNECTIONS - DEAF, f"only {result['calls']} calls")
    return result, resident_mib(server)


def compare(make_server, make_client, make_reader, calls, rounds):
    """The 56 alone and beside 8 that never read, in turns; in the end the 8 read, and have every byte."""
    for _ in range(rounds):
        server = make_server(POOL)
        alone, resident_alone = calls_beside(server, make_client)
        expect_within_the_pool(server.stop())

        server = make_server(POOL)
        reader = make_reader(server.address, "--calls", calls)
        beside, resident_beside = calls_beside(server, make_client, reader)
        reader.read()
        expect_equal(reader.answers(timeout=60), DEAF * calls, "answers that were read late")
        counters = server.stop()
        expect_within_the_pool(counters)
        expect(counters["conn_output_full"] > 0, "nobody's answers had to wait")
        print(f"        {alone['qps']:9.0f} calls/s alone, {beside['qps']:9.0f} beside {DEAF} that do not read; "
              f"{resident_alone} and {resident_beside} MiB resident", flush=True)
