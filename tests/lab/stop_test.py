#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""One side of an RDMA connection ends in the middle of the work: the other ends cleanly, or goes on with others."""

import re
import signal
import time

from lab import PeerClient, PeerServer, RdmaClient, RdmaServer
from harness import MODES, expect, expect_equal, main, test

BUSY = ("--thread_num", 2, "--queue_depth", 8, "--attachment_size", 30000, "--test_seconds", 120, "--progress")


def busy_client(server, *args, **options):
    """A client that has begun to work."""
    client = RdmaClient(server.address, *BUSY, *args, **options)
    client.wait_stderr(r"[1-9]\d* calls/s")
    return client


@test
def an_interrupted_client_reports_what_it_has():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        client = busy_client(server, mode=mode)
        client.interrupt()
        expect(client.finish_clean()["calls"] > 0, "the client has no figures")
        server.stop_clean()


@test
def an_interrupted_server_ends_its_client():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        client = busy_client(server, mode=mode)
        counters = server.stop()
        expect(server.result()["calls"] > 0, "the server has no figures")
        expect_equal(counters["conns_cut_off"], 0, "connections cut off")
        client.finish(status=1)
        error = client.result()["first_error"]
        expect(re.search(r"error (2003|1014)\)", error), f"not how a stop ends calls: \"{error}\"")
        expect_equal(client.counters()["conns_live"], 0, "connections left")


@test
def a_killed_server_ends_its_client():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        client = busy_client(server, mode=mode)
        server.kill()
        client.finish(status=1)
        expect(client.result()["errors"] > 0, "no error is counted")
        expect_equal(client.counters()["conns_live"], 0, "connections left")


@test
def a_killed_client_leaves_the_server_to_others():
    for mode in MODES:
        server = RdmaServer(mode=mode)
        victim, other = busy_client(server), busy_client(server)
        victim.kill()
        time.sleep(1)
        other.expect_alive()
        other.interrupt()
        other.finish_clean()
        counters = server.stop()
        expect_equal(counters["conns_live"], 0, "connections left")
        expect_equal(counters["rdma_connections"], 4, "RDMA connections")


@test
def many_clients_die_at_once():
    server = RdmaServer(mode="event")
    victims = [busy_client(server, "--thread_num", 8) for _ in range(2)]
    for victim in victims:
        victim.signal(signal.SIGKILL)
    for victim in victims:
        victim.wait()
    RdmaClient(server.address, "--test_iterations", 10).finish_clean()
    expect_equal(server.stop()["conns_live"], 0, "connections left")


@test
def a_server_that_stops_answering_is_given_up():
    server = RdmaServer()
    client = busy_client(server, "--rpc_timeout_ms", 1500)
    server.signal(signal.SIGSTOP)
    try:
        client.finish(status=1, timeout=20)
        expect("1008" in client.result()["first_error"], client.result()["first_error"])
    finally:
        server.signal(signal.SIGCONT)


@test
def a_foreign_peer_may_be_killed():
    server = RdmaServer(mode="event")
    victim = PeerClient(server.address, "--messages", 1000000)
    client = busy_client(server)
    victim.kill()
    client.interrupt()
    client.finish_clean()
    expect_equal(server.stop()["conns_live"], 0, "connections left")
    foreign = PeerServer()
    client = RdmaClient(foreign.address, *BUSY, "--thread_num", 1)
    client.wait_stderr(r"[1-9]\d* calls/s")
    foreign.kill()
    client.finish(status=1)
    expect(client.result()["errors"] > 0, "no error is counted")


@test
def a_foreign_server_sees_an_interrupted_client_end():
    foreign = PeerServer("--cut-off")
    client = RdmaClient(foreign.address, *BUSY, "--thread_num", 1)
    client.wait_stderr(r"[1-9]\d* calls/s")
    client.interrupt()
    client.finish_clean()
    foreign.counts()


if __name__ == "__main__":
    main()
