#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Calls over RDMA between an xr-perf server and client in processes of their own, every echoed attachment compared.

Each mode meets each block type on the server's side and on the client's, and each of them meets each size.
"""

from lab import BLOCKS, IN_GUEST, RdmaClient, RdmaServer
from harness import CPUS, MODES, Skip, expect, expect_equal, main, test

# Around every border on the way: none, one, the small ones, the zero-copy limit, a block's payload, many blocks.
SIZES = (0, 1, 64, 511, 512, 8160, 8161, 65536, 4 << 20)


def iterations_for(size):
    return 4 if size >= 1 << 20 else 40


def echo(server, size, *args, **options):
    client = RdmaClient(server.address, "--attachment_size", size, "--test_iterations", iterations_for(size), *args,
                        **options)
    result = client.finish_clean()
    expect_equal(result["calls"], iterations_for(size) * result["threads"], "calls")
    return client, result


def echo_sizes(server_mode):
    mode_number = MODES.index(server_mode)
    for block_number, block in enumerate(BLOCKS):
        server = RdmaServer(mode=server_mode, block=block)
        for number, size in enumerate(SIZES[(mode_number + block_number) % 3 :: 3]):
            _, result = echo(server, size, "--queue_depth", 4, mode=MODES[(number + mode_number) % 3],
                             block=BLOCKS[(number + 2 * block_number) % 3])
            expect_equal(result["mode"], MODES[(number + mode_number) % 3], "mode")
        counters = server.stop_clean()
        expect_equal(counters["rdma_connections"], 3, "RDMA connections")


@test
def a_polling_server_echoes_every_size():
    echo_sizes("poll")


@test
def an_event_driven_server_echoes_every_size():
    echo_sizes("event")


@test
def an_adaptive_server_echoes_every_size():
    echo_sizes("adaptive")


@test
def sixty_four_connections_share_one_lcore():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        client, result = echo(server, 512, "--thread_num", 64, "--queue_depth", 2, mode=mode)
        expect_equal(result["lcores"], 1, "lcores")
        expect_equal(client.counters()["rdma_connections"], 64, "the client's RDMA connections")
        expect_equal(server.stop_clean()["rdma_connections"], 64, "the server's RDMA connections")


@test
def connections_spread_over_two_lcores():
    if len(CPUS) < 2:
        raise Skip("needs two processors")
    lcores = f"{CPUS[0]},{CPUS[1]}"
    server = RdmaServer(cpu=lcores, mode="event")
    _, result = echo(server, 8161, "--thread_num", 4, "--queue_depth", 4, cpu=lcores, mode="event")
    expect_equal(result["lcores"], 2, "lcores")
    server.stop_clean()


@test
def the_smallest_queues_are_enough():
    server = RdmaServer("--rdma_sq_size", 16, "--rdma_rq_size", 16, mode="event")
    client, _ = echo(server, 65536, "--queue_depth", 8, "--rdma_sq_size", 16, "--rdma_rq_size", 16, mode="event")
    counters = client.counters()
    expect(counters["rdma_send_window_closed"] > 0, f"windows of 13 never closed: {counters}")
    server.stop_clean()


@test
def connections_beyond_what_one_completion_queue_holds():
    """Each can have 5120 sends complete; a queue of soft-RoCE's holds 32767, one of a card's may hold more."""
    deep = ("--rdma_sq_size", 4096)
    server = RdmaServer(*deep, mode="event")
    client, _ = echo(server, 8161, "--thread_num", 16, *deep, mode="event")
    for counters in (client.counters(), server.stop_clean()):
        expect_equal(counters["rdma_connections"], 16, "RDMA connections")
        expect(counters["cq_further"] == 2 or not IN_GUEST, f"{counters['cq_further']} further queues")


@test
def every_message_may_be_copied():
    server = RdmaServer("--nordma_recv_zerocopy")
    client, _ = echo(server, 8161, "--queue_depth", 4, "--nordma_recv_zerocopy")
    expect_equal(client.counters()["rdma_zero_copy"], 0, "messages taken without a copy")
    server.stop_clean()


@test
def no_wake_up_is_lost_with_a_cap_on_sleeping():
    for mode in ("event", "adaptive"):
        server = RdmaServer("--wait-cap-ms", 100, mode=mode)
        echo(server, 8161, "--wait-cap-ms", 100, "--queue_depth", 2, mode=mode)
        server.stop_clean()


if __name__ == "__main__":
    main()
