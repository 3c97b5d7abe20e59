#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""64 connections over TCP on a pool of 64 MiB, of which 8 do not read; XR_LIMIT_ROUNDS says how often."""

import os

from limit import LateReader, POOL, compare, expect_within_the_pool, resident_mib
from harness import Client, MODES, SANITIZED, Server, expect, expect_equal, main, test

ROUNDS = int(os.environ.get("XR_LIMIT_ROUNDS", "1"))

# What the process holds beside the pool: its code, stacks, and what the sanitizers add.
BESIDE_MIB = 64


def make_client(address, *args):
    return Client(address, "--queue_depth", 4, "--attachment_size", 65536, "--echo_attachment", "--test_seconds", 1,
                  "--rpc_timeout_ms", 60000, *args)


@test
def connections_that_do_not_read_stop_no_other():
    for mode in MODES if ROUNDS > 1 else MODES[1:2]:
        compare(lambda *args: Server(*args, mode=mode), make_client, LateReader, calls=200, rounds=ROUNDS)


@test
def connections_with_large_messages_take_turns():
    for _ in range(ROUNDS):
        server = Server(POOL)
        client = Client(server.address, "--thread_num", 32, "--queue_depth", 4, "--attachment_size", 4 << 20,
                        "--echo_attachment", "--test_iterations", 8, "--rpc_timeout_ms", 60000,
                        "--rdma_memory_pool_max_regions=16")
        client.finish(timeout=60)
        result = client.result()
        expect_equal((result["errors"], result["calls"]), (0, 32 * 8), "errors and calls")
        resident = resident_mib(server)
        if not SANITIZED:
            expect(resident < 64 + BESIDE_MIB, f"{resident} MiB resident")
        counters = server.stop()
        expect_within_the_pool(counters)
        expect(counters["conn_reservations_waited"] > 0, "no message had to wait for its turn")


@test
def late_readers_of_large_answers_lose_nothing():
    server = Server(POOL)
    reader = LateReader(server.address, "--calls", 3, "--attachment", 2 << 20, "--rdma_memory_pool_max_regions", 16,
                        connections=32)
    reader.wait_until_stuck()
    reader.read()
    expect_equal(reader.answers(timeout=60), 3 * 32, "answers")
    expect_within_the_pool(server.stop())


if __name__ == "__main__":
    main()
