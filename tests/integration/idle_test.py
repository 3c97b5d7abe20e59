#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""An idle server costs nothing where it may sleep, and never sleeps where it polls.

Three figures agree on it: the library's counters, the kernel's count of sleeps, and the CPU time. XR_IDLE_S says for
how many seconds it is watched.
"""

import os
import resource
import select
import socket
import time

from harness import (CPUS, SANITIZED, Server, Skip, THREAD_SANITIZED, expect, expect_equal, main, receive, test, vector,
                     wait_until)

IDLE_S = int(os.environ.get("XR_IDLE_S", 1 if SANITIZED else 3))
SHORT_S = 1
CPU_SHARE = 0.005  # of one processor

STIRRINGS = 8

CROWD = 1000
DESCRIPTORS = CROWD + 200


def serve_one_call(server):
    """Leaves a connection open behind a call that was served: idle, not fresh."""
    connection = server.connect()
    connection.sendall(vector("rpc-warmup-request"))
    head = receive(connection, 12)
    receive(connection, int.from_bytes(head[4:8], "big"))
    return connection


def await_rest(server):
    """What it was given to do may take a while on a busy machine."""
    def rests():
        cpu = server.cpu_seconds()
        time.sleep(0.5)
        return server.cpu_seconds() - cpu < CPU_SHARE * 0.5

    wait_until(rests, "the server comes to rest")


def expect_idle(server, seconds):
    """Watches it from outside."""
    await_rest(server)
    switches, cpu = server.switches(), server.cpu_seconds()
    time.sleep(seconds)
    # The thread sanitizer has a thread of its own in every program, which wakes ten times a second.
    if not THREAD_SANITIZED:
        expect_equal(server.switches() - switches, 0, f"sleeps begun in {seconds} s")
    spent = server.cpu_seconds() - cpu
    expect(spent < CPU_SHARE * seconds, f"{spent:.4f} s of CPU time in {seconds} s")


def expect_no_wake(mode):
    server = Server("-l", ",".join(map(str, CPUS)), mode=mode)
    connection = serve_one_call(server)
    expect_idle(server, IDLE_S)
    counters = server.stop()
    connection.close()
    # While it stops, each lcore looks now and then whether all is done.
    expect(counters["reactor_wakes_timer"] <= 2 * len(CPUS), f"{counters['reactor_wakes_timer']} wakes by a timer")
    expect_equal(counters["reactor_wakes_cap"], 0, "wakes by the cap")
    expect_equal(counters["reactor_wakes_rescued"], 0, "lost wake-ups")
    # The start, one call and the stop; on each lcore the rest of the time is one long sleep.
    expect(counters["reactor_sleeps"] <= STIRRINGS * len(CPUS), f"{counters['reactor_sleeps']} sleeps")
    expect(counters["reactor_sleep_us"] >= IDLE_S * 1000000 * len(CPUS), f"{counters['reactor_sleep_us']} us asleep")


@test
def an_idle_event_driven_server_does_not_wake():
    expect_no_wake("event")


@test
def an_idle_adaptive_server_does_not_wake():
    expect_no_wake("adaptive")


def send_until_stuck(connection, data):
    """Again and again, until the peer has taken nothing for a while; the last one may be cut."""
    sent = 0
    connection.setblocking(False)
    while select.select([], [connection], [], 0.5)[1]:
        sent += connection.send(data[sent % len(data):])


def stuck_connections(server):
    """One in each state in which a peer can leave a connection for long, and which must not keep the server busy."""
    request = vector("rpc-echo16-request")
    silent, half_frame = server.connect(), server.connect()
    half_frame.sendall(request[:-1])
    deaf, gone_deaf = server.connect(), server.connect()
    for connection in (deaf, gone_deaf):
        send_until_stuck(connection, request * 1000)
    gone_deaf.shutdown(socket.SHUT_WR)
    return [silent, half_frame, deaf, gone_deaf]


@test
def stuck_connections_keep_no_server_busy():
    for mode in ("event", "adaptive"):
        server = Server("--conn_output_limit_kb=64", "--conn_input_limit_kb=64", mode=mode)
        connections = stuck_connections(server)
        time.sleep(1)
        expect_idle(server, SHORT_S)
        for connection in connections:
            connection.close()
        counters = server.stop()
        expect(counters["rpc_answers_held_back"] > 0 and counters["conn_input_held"] > 0, "nothing was held back")
        expect_equal(counters["conns_live"], 0, "connections left")


def allow_descriptors():
    """Here, and in the programs that are started from here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        raise Skip(f"only {hard} descriptors are allowed")
    if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))


@test
def a_crowd_of_idle_connections_costs_nothing():
    allow_descriptors()
    for mode in ("event", "adaptive"):
        server = Server("-l", ",".join(map(str, CPUS)), mode=mode)
        connections = [serve_one_call(server) for _ in range(CROWD)]
        expect_idle(server, IDLE_S)
        for connection in connections:
            connection.close()
        counters = server.stop()
        expect_equal(counters["conns_opened"], CROWD, "connections")
        expect_equal(counters["reactor_wakes_rescued"], 0, "lost wake-ups")
        expect_equal(counters["lcores_" + mode], len(CPUS), f"lcores in {mode} mode")


def worked_or_waited(threads, seconds):
    """The share of the time that a thread ran, or would have run had another one not been on its processor."""
    before = {thread: thread.scheduled_ns() for thread in threads}
    began = time.monotonic_ns()
    time.sleep(seconds)
    return {thread.processors: (thread.scheduled_ns() - before[thread]) / (time.monotonic_ns() - began)
            for thread in threads}


@test
def a_polling_server_never_sleeps_on_exactly_its_lcores():
    allow_descriptors()
    for lcores in ([CPUS[0]], CPUS):
        server = Server("-l", ",".join(map(str, lcores)), mode="poll")
        connections = [serve_one_call(server) for _ in range(CROWD)]
        time.sleep(0.5)
        workers = server.workers()
        expect_equal(sorted(thread.processors for thread in workers), sorted(map(str, lcores)), "processors of workers")
        switches = sum(thread.switches() for thread in workers)
        for processor, share in worked_or_waited(workers, IDLE_S).items():
            expect(share >= 0.95, f"on processor {processor} it wanted to run for {share:.3f} of the time")
        expect_equal(sum(thread.switches() for thread in workers) - switches, 0, "sleeps begun")
        for connection in connections:
            connection.close()
        counters = server.stop()
        expect_equal(counters["reactor_sleeps"], 0, "sleeps")
        expect_equal(counters["lcores_poll"], len(lcores), "lcores in poll mode")


if __name__ == "__main__":
    main()
