#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""One side ends in the middle of the work: the other one ends cleanly, or goes on with others."""

import signal
import time

from harness import Client, MODES, SLACK, Server, expect, expect_equal, main, test

BUSY = ("--thread_num", 4, "--queue_depth", 8, "--attachment_size", 65536, "--echo_attachment", "--test_seconds", 60,
        "--progress")


def busy_client(server, *args, **options):
    """A client that has begun to work."""
    client = Client(server.address, *BUSY, *args, **options)
    client.wait_stderr(r"[1-9]\d* calls/s")
    return client


@test
def an_interrupted_client_reports_what_it_has():
    for mode in MODES:
        server = Server(mode=mode)
        client = busy_client(server, mode=mode)
        client.interrupt()
        client.finish()
        result = client.result()
        expect_equal(result["errors"], 0, "errors")
        expect(result["calls"] > 0 and result["seconds"] > 0, f"no figures: {result}")
        server.stop()
        expect_equal(server.counters()["conns_live"], 0, "connections left")


@test
def an_interrupted_server_ends_its_client():
    for mode in MODES:
        server = Server(mode=mode)
        client = busy_client(server, mode=mode)
        server.stop()
        expect(server.result()["calls"] > 0, "the server has no figures")
        client.finish(status=1)
        result = client.result()
        expect(result["errors"] > 0 and result["calls"] > 0, f"odd figures: {result}")
        expect(result["first_error"] in client.stderr.text(), "the first error is not told")


@test
def a_killed_server_ends_its_client():
    server = Server()
    client = busy_client(server)
    server.kill()
    client.finish(status=1)
    expect(client.result()["errors"] > 0, "no error is counted")


@test
def a_killed_client_leaves_the_server_to_others():
    server = Server()
    victim, other = busy_client(server), busy_client(server)
    victim.kill()
    time.sleep(0.5)
    other.expect_alive()
    other.interrupt()
    other.finish()
    expect_equal(other.result()["errors"], 0, "the other client's errors")
    counters = server.stop()
    expect_equal(counters["conns_live"], 0, "connections left")
    expect_equal(counters["conns_opened"], 8, "connections opened")


@test
def many_clients_die_at_once():
    server = Server(mode="event")
    victims = [busy_client(server, "--thread_num", 16) for _ in range(3)]
    for victim in victims:
        victim.signal(signal.SIGKILL)
    for victim in victims:
        victim.wait()
    Client(server.address, "--test_iterations", 10).finish()
    expect_equal(server.stop()["conns_live"], 0, "connections left")


@test
def a_server_that_stops_answering_is_given_up():
    server = Server()
    client = busy_client(server, "--rpc_timeout_ms", 500)
    server.signal(signal.SIGSTOP)
    try:
        client.finish(status=1)
        expect("1008" in client.result()["first_error"], client.result()["first_error"])
    finally:
        server.signal(signal.SIGCONT)


@test
def a_missing_server_is_an_error_at_once():
    server = Server()
    address = server.address
    server.stop()
    client = Client(address, "--thread_num", 3)
    client.finish(status=1)
    result = client.result()
    expect_equal(result["errors"], 3, "errors")
    expect_equal(result["transport"], "none", "transport")
    expect_equal(result["calls"], 0, "calls")


@test
def both_interrupted_at_once_end():
    server = Server(mode="event")
    client = busy_client(server, mode="event")
    client.interrupt()
    server.interrupt()
    server.finish()
    expect(client.wait() in (0, 1), "the client ended otherwise")


@test
def a_server_without_clients_ends_at_once():
    for mode in MODES:
        server = Server(mode=mode)
        begin = time.monotonic()
        server.stop()
        expect(time.monotonic() - begin < 2 * SLACK, "it took long")


if __name__ == "__main__":
    main()
