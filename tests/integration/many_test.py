#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Very many connections, and more than there are descriptors for."""

import resource
import socket

from harness import Client, SANITIZED, SLACK, Server, Skip, expect, expect_equal, main, receive, test, vector, wait_until

MANY = 2000 if SANITIZED else 10000
CALLS = 3

REQUEST = vector("rpc-warmup-request")


def descriptors(soft, hard):
    """A wrapper that gives a program these limits."""
    return ("prlimit", f"--nofile={soft}:{hard}")


def need_descriptors(count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Skip(f"{count} descriptors are needed, and the hard limit is {hard}")


def many_connections_are_served(mode):
    """The client dials all of them at once, and goes on when each has had an answer."""
    need_descriptors(MANY + 100)
    server = Server(mode=mode)
    client = Client(server.address, "--thread_num", MANY, "--test_iterations", CALLS, "--use_rdma=false",
                    "--connect_timeout_ms", 30000, "--rpc_timeout_ms", 60000, mode=mode)
    client.finish(timeout=60)
    result, counters = client.result(), server.stop()
    expect_equal(result["errors"], 0, "errors")
    expect_equal(result["calls"], MANY * CALLS, "calls")
    expect_equal(counters["conns_opened"], MANY, "connections opened")
    expect_equal(counters["conns_live"], 0, "connections left")
    expect_equal(counters["conns_failed"] + counters["accept_errors"] + counters["conns_cut_off"], 0, "failures")
    expect_equal(counters["rpc_requests"], MANY * (CALLS + 1), "requests")
    expect_equal(client.counters()["conns_opened"], MANY, "the client's connections")


@test
def very_many_connections_on_one_event_driven_worker():
    many_connections_are_served("event")


@test
def very_many_connections_on_one_polling_worker():
    many_connections_are_served("poll")


@test
def the_soft_limit_of_descriptors_is_no_limit():
    need_descriptors(1000)
    server = Server(wrapper=descriptors(64, 1000))
    client = Client(server.address, "--thread_num", 500, "--test_iterations", 1, wrapper=descriptors(64, 1000))
    client.finish()
    expect_equal(client.result()["calls"], 500, "calls")
    expect_equal(server.stop()["conns_opened"], 500, "connections opened")


@test
def a_client_says_that_its_connections_are_too_many():
    server = Server()
    client = Client(server.address, "--thread_num", 500, wrapper=descriptors(64, 200))
    client.finish(status=1)
    expect("500 connections need" in client.stderr.text(), client.stderr.text())
    expect("this process may open 200" in client.stderr.text(), client.stderr.text())
    expect_equal(server.stop()["conns_opened"], 0, "connections opened")


def answered(connection):
    connection.settimeout(0.1)
    try:
        receive(connection, int.from_bytes(receive(connection, 12)[4:8], "big"))
    except socket.timeout:
        return False
    return True


@test
def whoever_finds_no_descriptor_waits_for_one():
    server = Server(wrapper=descriptors(64, 64))
    connections = [server.connect() for _ in range(100)]
    for connection in connections:
        connection.sendall(REQUEST)
    server.wait_stderr(r"can't accept for 100 ms: Too many open files; this process may have 64 descriptors")
    served = [connection for connection in connections if answered(connection)]
    waiting = [connection for connection in connections if connection not in served]
    expect(served and len(waiting) > 36, f"{len(served)} of 100 are served")
    for connection in served:
        connection.close()
    for connection in waiting:
        wait_until(lambda connection=connection: answered(connection), "a connection gets its turn")
    errors = server.stop()["accept_errors"]
    expect(0 < errors < 100 * SLACK, f"{errors} accepts have failed")


if __name__ == "__main__":
    main()
