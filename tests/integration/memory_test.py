#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""More is under way than the pool can hold: connections slow down, none is lost, none waits for ever."""

import struct
import threading

from harness import CPUS, Client, Server, Skip, expect, expect_equal, main, receive, test

POOL = ("--rdma_memory_pool_initial_size_mb=32", "--rdma_memory_pool_max_regions=1")


def request(size):
    """A call with an attachment that is to come back, as a client sends it."""
    rest, varint = b"\x20\x01\x28", size
    while varint > 0x7F:
        rest += bytes((varint & 0x7F | 0x80,))
        varint >>= 7
    meta = bytes.fromhex("0a1c0a14") + b"test.PerfTestService" + bytes.fromhex("1204") + b"Test" + rest + bytes(
        (varint,))
    attachment = bytes(range(251)) * (size // 251 + 1)
    return b"PRPC" + struct.pack(">II", len(meta) + 2 + size, len(meta)) + meta + b"\x08\x01" + attachment[:size]


def expect_answer(connection, size):
    """The whole answer to such a call."""
    head = receive(connection, 12)
    expect_equal(head[:4], b"PRPC", "the answer's magic")
    size_of_body, body = struct.unpack(">I", head[4:8])[0], bytearray()
    while len(body) < size_of_body:
        part = connection.recv(min(1 << 20, size_of_body - len(body)))
        expect(part, "closed within an answer")
        body += part
    expect(bytes(body[-size:]) == request(size)[-size:], "the answer's attachment differs")


def expect_served(server, *args):
    client = Client(server.address, "--queue_depth", 4, "--attachment_size", 1 << 20, "--echo_attachment",
                    "--test_iterations", 50, *args)
    client.finish(timeout=20)
    expect_equal(client.result()["errors"], 0, "errors")


def expect_clean(server):
    counters = server.stop()
    for name in ("conns_live", "conns_given_up"):
        expect_equal(counters[name], 0, name)
    expect("still in use" not in server.stderr.text(), "blocks are left in use")
    for pool in counters["memory"]:
        expect_equal(sum(pool[place] for place in ("free", "cached", "recv_slots", "in_use")), pool["blocks"], "blocks")
        expect(pool["cached_by_lcore"], "no lcore's cache is told")
    return counters


@test
def attachments_beyond_the_pool_take_turns():
    server = Server("--pool_max_mb=64")
    client = Client(server.address, "--thread_num", 32, "--queue_depth", 4, "--attachment_size", 4 << 20,
                    "--echo_attachment", "--test_iterations", 4, "--rpc_timeout_ms", 60000,
                    "--rdma_memory_pool_max_regions=16")
    client.finish(timeout=30)
    result = client.result()
    expect_equal(result["errors"], 0, "errors")
    expect_equal(result["calls"], 32 * 4, "calls")
    expect_served(server)
    counters = expect_clean(server)
    expect(counters["conn_reservations_waited"] > 0, "the pool was never at its limit")
    expect(counters["mem_region_bytes"] <= 64 << 20, f"{counters['mem_region_bytes']} bytes of regions")


@test
def a_frame_that_the_pool_cannot_hold_ends_its_connection_alone():
    server = Server(*POOL, mode="event")
    hoarders = [server.connect() for _ in range(8)]
    for hoarder in hoarders:
        hoarder.settimeout(20)  # the end comes as soon as the server has read enough, however busy the machine is
        try:
            hoarder.sendall(b"PRPC" + struct.pack(">II", 60 << 20, 40) + bytes(8 << 20))
        except OSError:
            pass
    expect_served(server, "--rpc_timeout_ms", 10000)
    for hoarder in hoarders:
        hoarder.close()
    expect_equal(expect_clean(server)["conn_messages_too_large"], 8, "connections with messages that are too large")


def send_two(connection):
    """Two calls of 4 MiB; the second may not be read until the first one's answer is."""
    try:
        connection.sendall(request(4 << 20) * 2)
    except OSError:
        pass


def read_two(connection, answered):
    """All at once: which of them has its turn first is the server's choice."""
    connection.settimeout(60)
    for _ in range(2):
        expect_answer(connection, 4 << 20)
        answered.append(connection)


@test
def answers_that_nobody_reads_stop_no_other():
    server = Server(*POOL, mode="event")
    deaf, answered = [server.connect() for _ in range(10)], []
    senders = [threading.Thread(target=send_two, args=(connection,), daemon=True) for connection in deaf]
    for sender in senders:
        sender.start()
    expect_served(server, "--rpc_timeout_ms", 20000)
    readers = [threading.Thread(target=read_two, args=(connection, answered), daemon=True) for connection in deaf]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    expect_equal(len(answered), 2 * len(deaf), "answers")
    for connection in deaf:
        connection.close()
    counters = expect_clean(server)
    expect(counters["conn_reservations_waited"] > 0, "the pool was never at its limit")


@test
def a_large_message_has_what_other_lcores_cache():
    if len(CPUS) < 2:
        raise Skip("one processor")
    server = Server("--pool_max_mb=64", "--rdma_memory_pool_tls_cache_num=4096", cpu=f"{CPUS[0]},{CPUS[1]}")
    for threads, size in ((2, 16000000), (1, 44000000), (1, 44000000)):
        client = Client(server.address, "--thread_num", threads, "--attachment_size", size, "--test_iterations", 20,
                        "--rpc_timeout_ms", 20000, "--rdma_memory_pool_max_regions=16")
        client.finish(timeout=60)
        expect_equal(client.result()["errors"], 0, f"errors with {size} bytes")
    expect_clean(server)


if __name__ == "__main__":
    main()
