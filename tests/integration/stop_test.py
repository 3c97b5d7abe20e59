#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""One side ends in the middle of the work: the other one ends cleanly, or goes on with others."""

import re
import signal
import socket
import time

from harness import (Client, MODES, SLACK, Server, expect, expect_equal, main, receive, test, vector,
                     wait_until)

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
def a_client_interrupted_between_its_calls_reports_as_well():
    server = Server()
    client = Client(server.address, "--thread_num", 4, "--expected_qps", 20, "--test_seconds", 60, "--progress")
    client.wait_stderr(r"[1-9]\d* calls/s")
    client.interrupt()
    client.finish()
    result = client.result()
    expect(result["seconds"] > 0.5 and result["qps"] > 0, f"no figures: {result}")
    expect(result["request_wire_bytes"] > 0, f"no bytes: {result}")
    expect_equal(client.counters()["conns_cut_off"], 0, "connections cut off")


# What a call may end with whose server stops: ELOGOFF, or behind the last answer the connection's end.
STOPPED = r"error (2003|1014)\)"


@test
def an_interrupted_server_ends_its_client():
    for mode in MODES:
        server = Server(mode=mode)
        client = busy_client(server, mode=mode)
        counters = server.stop()
        expect(server.result()["calls"] > 0, "the server has no figures")
        expect_equal(counters["conns_cut_off"], 0, "connections cut off")
        client.finish(status=1)
        result = client.result()
        expect(result["errors"] > 0 and result["calls"] > 0, f"odd figures: {result}")
        expect(result["first_error"] in client.stderr.text(), "the first error is not told")
        expect(re.search(STOPPED, result["first_error"]), f"not how a stop ends calls: {result['first_error']}")


# A server that soon holds answers back from who does not read them, and waits long for that.
HOLDING_BACK = ("--conn_output_limit_kb", 64, "--conn_close_ms", 60000)


@test
def a_stopping_server_refuses_connections():
    server = Server(*HOLDING_BACK, "--drain_ms", 60000)
    deaf = deaf_peer(server)
    server.interrupt()
    wait_until(lambda: refused(server), "a stopping server refuses connections")
    server.wait_stderr("stopping: waiting for 1 connections, up to --drain_ms=60000; a second stop does not wait")
    deaf.close()
    server.finish()


def deaf_peer(server):
    """A connection to a server of that kind: it sends requests until no more are taken, and reads no answer."""
    connection = server.connect()
    connection.settimeout(0.5 * SLACK)
    requests = vector("rpc-echo16-request") * 1000
    try:
        while True:
            connection.sendall(requests)
    except socket.timeout:
        return connection


def refused(server):
    """Whether a server that was interrupted takes no connection any more."""
    server.repeat_lost_interrupt()
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # its listener was closed just then
    return False


@test
def a_second_signal_ends_a_server_at_once():
    for mode in MODES:
        server = Server(*HOLDING_BACK, "--drain_ms", 60000, mode=mode)
        deaf = deaf_peer(server)
        server.interrupt()
        wait_until(lambda: refused(server), "a stopping server refuses connections")
        server.expect_alive()
        server.interrupt()
        server.finish()
        # Besides the deaf one perhaps the last that asked whether connections are refused.
        expect(server.counters()["conns_cut_off"] >= 1, "the second signal has cut off nothing")
        deaf.close()


@test
def a_server_waits_no_longer_than_agreed():
    server = Server(*HOLDING_BACK, "--drain_ms", 500)
    deaf = deaf_peer(server)
    server.stop()
    expect_equal(server.counters()["conns_cut_off"], 1, "connections cut off")
    expect("1 connections had not ended within --drain_ms=500" in server.stderr.text(), "nothing is logged")
    deaf.close()


IDLE = 1000


@test
def a_thousand_idle_connections_end_at_once():
    request = vector("rpc-warmup-request")
    for mode in MODES:
        server = Server("--drain_ms", 60000, mode=mode)
        connections = [server.connect() for _ in range(IDLE)]
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            receive(connection, int.from_bytes(receive(connection, 12)[4:8], "big"))
        begin = time.monotonic()
        counters = server.stop()
        expect(time.monotonic() - begin < 2 * SLACK, "it took long")
        expect_equal(counters["conns_cut_off"], 0, "connections cut off")
        expect_equal(counters["conns_closed"], IDLE, "connections closed")
        for connection in connections:
            expect_equal(connection.recv(1), b"", "what came instead of the end")
            connection.close()


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
