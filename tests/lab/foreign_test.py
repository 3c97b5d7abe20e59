#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""xr-perf in both roles against the peer of foreign make: thousands of messages of every size in both directions.

The peer credits by brpc's rule, in ones, in halves, and only when the window is closed; it polls, or sleeps until a
solicited message wakes it; and it checks every message against the protocol.
"""

from lab import PeerClient, PeerServer, RdmaClient, RdmaServer
from harness import MODES, expect, expect_equal, main, test

CREDITS = ("brpc", "ones", "halves", "late")
WAITS = ("poll", "event")
SIZES = (0, 1, 511, 512, 8160, 8161, 65536, 1 << 20)

SMALL_QUEUES = ("--sq", 16, "--rq", 16)
CALLS = 240


def peer_args(number, credit_mode, wait):
    """Every second peer has the smallest queues, every second cuts its messages anywhere."""
    return ("--credit-mode", credit_mode, "--wait", wait, "--solicit", ("minimal", "brpc")[number // 2 % 2],
            "--cut", ("full", "random")[number % 2], *(SMALL_QUEUES if number // 2 % 2 else ()))


def serve(credit_mode):
    """Our server, the foreign client."""
    for number, wait in enumerate(WAITS):
        number += 2 * CREDITS.index(credit_mode)
        server = RdmaServer(mode=MODES[number % 3])
        counts = PeerClient(server.address, "--messages", CALLS, *peer_args(number, credit_mode, wait)).counts()
        expect_equal((counts["transport"], counts["calls"]), ("rdma", CALLS), "transport and calls")
        expect_equal(counts["hello"], {"block_size": 8160, "sq": 128, "rq": 128}, "the server's hello")
        counters = server.stop_clean()
        expect_equal(counters["rdma_sends"], counts["received"], "messages sent")
        expect_equal(counters["rdma_receives"], counts["sent"], "messages received")


def call(credit_mode):
    """Our client, the foreign server: each run has one size."""
    for number, wait in enumerate(WAITS):
        number += 2 * CREDITS.index(credit_mode)
        size = SIZES[number]
        calls = 8 if size >= 1 << 20 else 200
        server = PeerServer(*peer_args(number, credit_mode, wait))
        client = RdmaClient(server.address, "--attachment_size", size, "--test_iterations", calls, "--queue_depth", 8,
                            mode=MODES[(number + 1) % 3])
        client.finish_clean()
        counts = server.counts()
        expect_equal((counts["transport"], counts["calls"]), ("rdma", calls + 1), "transport and calls")
        expect_equal(counts["hello"], {"block_size": 8160, "sq": 128, "rq": 128}, "the client's hello")


@test
def our_server_is_credited_by_brpcs_rule():
    serve("brpc")


@test
def our_server_is_credited_in_ones():
    serve("ones")


@test
def our_server_is_credited_in_halves():
    serve("halves")


@test
def our_server_is_credited_late():
    serve("late")


@test
def our_client_is_credited_by_brpcs_rule():
    call("brpc")


@test
def our_client_is_credited_in_ones():
    call("ones")


@test
def our_client_is_credited_in_halves():
    call("halves")


@test
def our_client_is_credited_late():
    call("late")


@test
def large_and_huge_blocks_are_announced_and_filled():
    for block, payload, rq_size in (("large", 65504, 128), ("huge", 2097120, 16)):
        server = RdmaServer(block=block)
        client = PeerClient(server.address, "--block-size", 65504, "--rq", 32, "--messages", 24, "--sizes",
                            "300000,3000000", "--depth", 4)
        counts = client.counts()
        expect_equal(counts["hello"], {"block_size": payload, "sq": 128, "rq": rq_size}, "the server's hello")
        expect_equal(counts["largest"], 65504, "the largest message from the server")
        server.stop_clean()


@test
def deep_queues_are_answered():
    server = RdmaServer("--rdma_sq_size", 512, "--rdma_rq_size", 400, mode="event")
    client = PeerClient(server.address, "--sq", 300, "--rq", 300, "--messages", 600, "--depth", 200, "--wait", "event",
                        "--credit-mode", "late")
    counts = client.counts()
    expect_equal(counts["hello"], {"block_size": 8160, "sq": 512, "rq": 400}, "the server's hello")
    server.stop_clean()


if __name__ == "__main__":
    main()
