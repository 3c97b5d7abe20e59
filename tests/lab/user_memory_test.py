#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Attachments in memory of the client's own, from the middle of a mapped range: registered they go over RDMA as they
lie, not registered they are refused there and go over TCP. The client compares every echo, and fails when the library
has not given each attachment back exactly once.
"""

import re

from lab import RdmaClient, RdmaServer
from harness import MODES, expect, expect_equal, main, test

CALLS = 40


def echo(server, memory, *args, transport="rdma", **options):
    result = RdmaClient(server.address, "--attachment_memory", memory, "--test_iterations", CALLS, *args,
                        **options).finish_clean(transport)
    expect_equal((result["calls"], result["attachment_memory"]), (CALLS, memory), "calls, memory of attachments")


@test
def registered_memory_goes_over_rdma():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        for size in (100, 8161, 100000):
            echo(server, "registered", "--attachment_size", size, "--queue_depth", 4, mode=mode)
        expect_equal(server.stop_clean()["rdma_connections"], 3, "RDMA connections")


@test
def any_memory_goes_over_tcp():
    server = RdmaServer()
    for memory in ("registered", "plain"):
        echo(server, memory, "--attachment_size", 100000, "--queue_depth", 4, "--use_rdma", "false", transport="tcp")
    server.stop_clean()


@test
def plain_memory_is_refused_over_rdma():
    server = RdmaServer()
    client = RdmaClient(server.address, "--attachment_memory", "plain", "--attachment_size", 1000,
                        "--test_iterations", CALLS)
    client.finish(status=1, timeout=30)
    result = client.result()
    expect_equal((result["calls"], result["transport"]), (0, "rdma"), "calls, transport")
    expect(re.search("memory not registered for RDMA", result["first_error"]), f"error: {result['first_error']}")
    expect_equal(client.counters()["rdma_errors"], 0, "RDMA connections that failed")
    echo(server, "registered", "--attachment_size", 1000)
    server.stop_clean()


if __name__ == "__main__":
    main()
