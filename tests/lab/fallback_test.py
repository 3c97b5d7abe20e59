#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Where RDMA cannot or shall not be used, the same connection goes on with TCP, and says why."""

import re
import subprocess

from lab import IN_GUEST, PeerClient, PeerServer, RdmaClient, RdmaServer
from harness import MODES, Skip, expect, expect_equal, main, test

CALLS = ("--test_iterations", 20, "--attachment_size", 8161, "--queue_depth", 4)


def expect_tcp(server, words, *args, server_counters=(), **options):
    """A client ends on TCP with these words as the reason, on the one connection that it opened."""
    client = RdmaClient(server.address, *CALLS, *args, **options)
    result = client.finish_clean(transport="tcp")
    expect(words in result["fallback_reason"], f"the reason is \"{result['fallback_reason']}\"")
    expect_equal(client.counters()["conns_opened"], 1, "connections opened by the client")
    counters = server.stop_clean()
    expect_equal(counters["conns_opened"], 1, "connections opened by the server")
    expect_equal(counters["rdma_connections"], 0, "RDMA connections")
    for name in server_counters:
        expect_equal(counters[name], 1, name)


@test
def a_server_without_a_usable_gid_refuses():
    for client_mode in ("poll", "event"):
        server = RdmaServer("--rdma_gid_index", 200)
        expect_tcp(server, "refused", server_counters=("handshakes_refused",), mode=client_mode)


@test
def a_server_port_without_rdma_refuses():
    expect_tcp(RdmaServer("--port", "default,rdma=off"), "refused", server_counters=("handshakes_refused",))


@test
def a_client_that_does_not_ask_gets_tcp():
    expect_tcp(RdmaServer(), "not asked for", "--use_rdma", "false")


@test
def a_client_port_without_rdma_does_not_ask():
    expect_tcp(RdmaServer(), "off", "--port", "default,rdma=off")


# ---- a port that is down ----

SECOND_ADDRESS = "10.78.0.1"


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    expect_equal(done.returncode, 0, f"{' '.join(words)}: {done.stderr}")


def second_device():
    """rxe1 at an address of its own, on an interface that may be taken down."""
    if not IN_GUEST:
        raise Skip("takes an interface down: only in a guest of the lab")
    if subprocess.run(("ip", "link", "show", "rx1"), capture_output=True, check=False).returncode != 0:
        command("ip", "link", "add", "rx1", "type", "dummy")
        command("ip", "addr", "add", f"{SECOND_ADDRESS}/24", "dev", "rx1")
        command("ip", "link", "set", "rx1", "mtu", "4200", "up")
        command("rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "rx1")
    command("ip", "link", "set", "rx1", "up")


@test
def the_second_device_serves_its_own_address():
    second_device()
    server = RdmaServer(address=SECOND_ADDRESS)
    RdmaClient(server.address, *CALLS).finish_clean()
    expect_equal(server.stop_clean()["rdma_connections"], 1, "RDMA connections")


@test
def a_port_that_is_down_at_the_start_means_tcp():
    second_device()
    command("ip", "link", "set", "rx1", "down")
    expect_tcp(RdmaServer(address=SECOND_ADDRESS), "port")


@test
def a_port_that_goes_down_is_left_and_found_again():
    second_device()
    server = RdmaServer(address=SECOND_ADDRESS)
    RdmaClient(server.address, *CALLS).finish_clean()
    command("ip", "link", "set", "rx1", "down")
    RdmaClient(server.address, *CALLS).finish_clean(transport="tcp")
    command("ip", "link", "set", "rx1", "up")
    RdmaClient(server.address, *CALLS).finish_clean()
    server.stop()


@test
def a_port_that_goes_down_ends_its_connections():
    second_device()
    for mode in MODES:
        server = RdmaServer(address=SECOND_ADDRESS, mode=mode)
        client = RdmaClient(server.address, "--attachment_size", 8161, "--queue_depth", 8, "--test_seconds", 120,
                            "--progress", mode=mode)
        client.wait_stderr(r"[1-9]\d* calls/s")
        command("ip", "link", "set", "rx1", "down")
        client.finish(status=1)
        command("ip", "link", "set", "rx1", "up")
        told = client.stderr.text() + server.stderr.so_far()
        for words in (rf"error .* RDMA connection with {SECOND_ADDRESS}:\d+ failed \(device rxe1, GID index \d+, QP 0x",
                      "rxe1 port 1: port error"):
            expect(re.search(words, told), f"no \"{words}\" is told: {told}")
        expect_equal(client.counters()["conns_live"], 0, "the client's connections left")
        expect_equal(server.stop()["conns_live"], 0, "the server's connections left")


# ---- a peer that thinks otherwise ----


@test
def a_foreign_server_may_refuse():
    server = PeerServer("--fallback", "refuse")
    result = RdmaClient(server.address, *CALLS).finish_clean(transport="tcp")
    expect("refused" in result["fallback_reason"], f"the reason is \"{result['fallback_reason']}\"")
    expect_equal(server.counts()["calls"], 21, "calls")


@test
def a_foreign_client_may_prefer_tcp_after_all():
    for how in ("ack-0", "bad-hello"):
        server = RdmaServer()
        client = PeerClient(server.address, "--fallback", how, "--messages", 50)
        expect_equal(client.counts()["transport"], "tcp", "transport")
        counters = server.stop_clean()
        expect_equal(counters["conns_opened"], 1, "connections")
        expect_equal(counters["fallbacks"], 1, "fallbacks")


if __name__ == "__main__":
    main()
