#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""More is under way than the pool can hold: some connections end, none waits for ever, all blocks come back."""

import struct
import time

from harness import Client, Server, expect, expect_equal, main, test

POOL = ("--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_max_regions=1")


def expect_served(server, *args):
    client = Client(server.address, "--queue_depth", 4, "--attachment_size", 1 << 20, "--echo_attachment",
                    "--test_iterations", 50, *args)
    client.finish(timeout=20)
    expect_equal(client.result()["errors"], 0, "errors")


def expect_clean(server):
    counters = server.stop()
    expect_equal(counters["conns_live"], 0, "connections left")
    expect("still in use" not in server.stderr.text(), "blocks are left in use")
    return counters


@test
def attachments_beyond_the_pool_end_in_time_and_leave_nothing():
    server = Server(*POOL)
    client = Client(server.address, "--thread_num", 32, "--queue_depth", 2, "--attachment_size", 4 << 20,
                    "--echo_attachment", "--test_seconds", 3, "--rpc_timeout_ms", 20000,
                    "--rdma_memory_pool_max_regions=16")
    client.wait(25)
    expect(client.result()["calls"] > 0, "not one call came through")
    expect_served(server)
    expect(expect_clean(server)["conn_read_starved"] > 0, "the pool was never at its limit")


@test
def unfinished_frames_that_fill_the_pool_stop_no_other():
    server = Server(*POOL, mode="event")
    hoarders = [server.connect() for _ in range(8)]
    for hoarder in hoarders:
        hoarder.settimeout(0.2)
        try:
            hoarder.sendall(b"PRPC" + struct.pack(">II", 60 << 20, 40) + bytes(8 << 20))
        except OSError:
            pass
    expect_served(server, "--rpc_timeout_ms", 10000)
    for hoarder in hoarders:
        hoarder.close()
    expect_clean(server)


@test
def answers_that_nobody_reads_stop_no_other():
    server = Server(*POOL, mode="event")
    # One request with a 4 MiB attachment, as a client sends it, taken from a real one.
    meta = bytes.fromhex("0a1c0a14") + b"test.PerfTestService" + bytes.fromhex("1204") + b"Test"
    size = 4 << 20
    rest = bytes.fromhex("2001") + b"\x28" + bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80,
                                                    size >> 14 & 0x7F | 0x80, size >> 21))
    body = meta + rest
    frame = b"PRPC" + struct.pack(">II", len(body) + 2 + size, len(body)) + body + b"\x08\x01" + bytes(size)
    deaf = [server.connect() for _ in range(10)]
    for connection in deaf:
        connection.settimeout(0.5)
        try:
            connection.sendall(frame * 2)
        except OSError:
            pass
    time.sleep(0.2)
    expect_served(server, "--rpc_timeout_ms", 10000)
    for connection in deaf:
        connection.close()
    expect(expect_clean(server)["conns_given_up"] > 0, "nobody was given up")


if __name__ == "__main__":
    main()
