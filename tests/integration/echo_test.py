#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Calls between an xr-perf server and client, every echoed attachment compared."""

import os
import socket

from harness import CPUS, Client, MODES, Server, Skip, expect, expect_equal, main, test

# Around every border on the way: none, one, the small ones, the zero-copy limit, a block's payload, many blocks.
SIZES = (0, 1, 64, 511, 512, 8160, 8161, 65536, 4 << 20)


def iterations_for(size):
    return 4 if size >= 1 << 20 else 50


def echo(server, size, *args, **options):
    """Runs a client to its end, checks what it says, returns its result."""
    iterations = iterations_for(size)
    client = Client(server.address, "--attachment_size", size, "--echo_attachment", "--test_iterations", iterations,
                    *args, **options)
    client.finish(timeout=30)
    result = client.result()
    expect_equal(result["errors"], 0, "errors")
    expect_equal(result["calls"], iterations * result["threads"], "calls")
    expect_equal(result["attachment"], size, "attachment")
    return result


def echo_all_sizes(server_mode):
    """Every size; the client's modes take turns, so that each pair of modes and each size meet over the three tests."""
    server = Server(mode=server_mode)
    shift = MODES.index(server_mode)
    for number, size in enumerate(SIZES):
        client_mode = MODES[(number + shift) % len(MODES)]
        result = echo(server, size, "--queue_depth", 4, "--thread_num", 2, mode=client_mode)
        expect_equal(result["mode"], client_mode, "mode")
    counters = server.stop()
    expect_equal(server.result()["errors"], 0, "the server's errors")
    expect_equal(server.result()["calls"], sum(2 * iterations_for(size) + 2 for size in SIZES), "the server's calls")
    expect_equal(counters["reactor_wakes_rescued"], 0, "lost wake-ups")


@test
def a_polling_server_echoes_every_size():
    echo_all_sizes("poll")


@test
def an_event_driven_server_echoes_every_size():
    echo_all_sizes("event")


@test
def an_adaptive_server_echoes_every_size():
    echo_all_sizes("adaptive")


@test
def no_wake_up_is_lost_with_a_cap_on_sleeping():
    for mode in ("event", "adaptive"):
        server = Server("--wait-cap-ms", 50, mode=mode)
        client = Client(server.address, "--wait-cap-ms", 50, "--test_iterations", 300, "--attachment_size", 8161,
                        "--echo_attachment", mode=mode)
        client.finish(timeout=30)
        expect_equal(client.counters()["reactor_wakes_rescued"], 0, "the client's lost wake-ups")
        expect_equal(server.stop()["reactor_wakes_rescued"], 0, "the server's lost wake-ups")


@test
def sixty_four_connections_share_one_lcore():
    for mode in MODES:
        server = Server(mode=mode)
        result = echo(server, 512, "--thread_num", 64, "--queue_depth", 2, mode=mode)
        expect_equal(result["threads"], 64, "threads")
        expect_equal(result["lcores"], 1, "lcores")
        counters = server.stop()
        expect_equal(counters["conns_opened"], 64, "connections opened")
        expect_equal(counters["conns_live"], 0, "connections left")


@test
def threads_spread_over_the_lcores_and_servers():
    if len(CPUS) < 2:
        raise Skip("needs two processors")
    lcores = f"{CPUS[0]},{CPUS[1]}"
    servers = [Server(cpu=lcores), Server(mode="event")]
    result = echo(servers[0], 64, "--servers", "+".join(s.address for s in servers), "--thread_num", 5, cpu=lcores)
    expect_equal(result["lcores"], 2, "lcores")
    for server, threads in zip(servers, (3, 2)):
        server.stop()
        expect_equal(server.result()["calls"], threads * (iterations_for(64) + 1), "calls of one server")


@test
def attachments_that_fill_the_queue_take_their_turns():
    server = Server()
    echo(server, 4 << 20, "--queue_depth", 6, "--rpc_timeout_ms", 20000)


@test
def nothing_comes_back_that_was_not_asked_for():
    server = Server()
    client = Client(server.address, "--attachment_size", 4096, "--noecho_attachment", "--test_iterations", 20)
    client.finish()
    server.stop()
    expect_equal(server.result()["attachment_bytes"], 0, "bytes sent back")
    result = client.result()
    expect(result["request_wire_bytes"] > 4096 > result["response_wire_bytes"], f"odd sizes on the wire: {result}")


@test
def the_result_names_the_transport_and_why():
    server = Server()
    for use_rdma in ("true", "false"):
        result = echo(server, 16, "--use_rdma", use_rdma)
        expect_equal(result["transport"], "tcp", "transport")
        expect(result["fallback_reason"], "no reason is given for TCP")


@test
def an_expected_rate_is_not_exceeded():
    server = Server()
    client = Client(server.address, "--expected_qps", 500, "--queue_depth", 8, "--test_seconds", 2)
    client.finish()
    # A tenth of a second's worth may be spent at once.
    calls = client.result()["calls"]
    expect(0 < calls <= 500 * 2.1 + 1, f"{calls} calls")


@test
def ipv6_is_spoken():
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        raise Skip("no IPv6 here")
    server = Server(listen="[::1]:0")
    echo(server, 64)


@test
def attachments_may_lie_in_memory_of_the_programs_own():
    server = Server()
    for memory in ("registered", "plain"):
        result = echo(server, 65536, "--attachment_memory", memory, "--queue_depth", 4)
        expect_equal(result["attachment_memory"], memory, "memory of attachments")
    server.stop()


if __name__ == "__main__":
    main()
