#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A client of brpc's offers RDMA to a server without it: refused, and served on the same connection."""

import time

from harness import MODES, Server, expect, expect_closed, expect_equal, main, receive, test, vector

REFUSAL = bytes.fromhex("52444d410028ffff") + bytes(32)
ACK_TCP = bytes(4)
ACK_RDMA = vector("ack-use-rdma")

HELLO = vector("hello-v2-client")
REQUEST = vector("rpc-echo16-request")
# The same call with "echo_attachment" and an answer that tells no CPU use.
RESPONSE = vector("rpc-echo16-response-empty")
ATTACHMENT = REQUEST[-16:]


def expect_served(connection):
    """The answer to REQUEST: success, the same correlation id, the same 16 bytes; fields may be present or not."""
    head = receive(connection, 12)
    expect_equal(head[:4], b"PRPC", "the answer's magic")
    body = receive(connection, int.from_bytes(head[4:8], "big"))
    meta = body[: int.from_bytes(head[8:12], "big")]
    # correlation_id = 4 (varint) and attachment_size = 5, as both vectors hold them
    expect(bytes.fromhex("208280808080") in REQUEST and meta.find(bytes.fromhex("2082808080804028")) >= 0,
           f"the correlation id is not in the answer's meta {meta.hex()}")
    expect_equal(body[-16:], ATTACHMENT, "the echoed attachment")


def greet(server, *pieces):
    """Sends the pieces as segments of their own and expects the refusal."""
    connection = server.connect()
    for piece in pieces:
        connection.sendall(piece)
        time.sleep(0.02)
    expect_equal(receive(connection, len(REFUSAL)).hex(), REFUSAL.hex(), "the refusal")
    return connection


@test
def a_hello_is_refused_and_the_connection_served():
    for mode in MODES:
        server = Server(mode=mode)
        connection = greet(server, HELLO)
        connection.sendall(ACK_TCP)
        for _ in range(3):
            connection.sendall(REQUEST)
            expect_served(connection)
        connection.close()
        counters = server.stop()
        expect_equal(counters["handshakes_refused"], 1, "handshakes refused")


@test
def a_port_without_rdma_refuses_alike():
    server = Server("--port", "default,rdma=off")
    connection = greet(server, HELLO)
    connection.sendall(ACK_TCP + REQUEST)
    expect_served(connection)
    plain = server.connect()
    plain.sendall(REQUEST)
    expect_served(plain)
    connection.close()
    plain.close()
    counters = server.stop()
    expect_equal(counters["handshakes_refused"], 1, "handshakes refused")
    expect_equal(counters["conns_opened"], 2, "connections opened")


@test
def however_the_bytes_are_cut():
    server = Server()
    for cut in (1, 3, 4, 5, 6, 7, 20, 39):
        connection = greet(server, HELLO[:cut], HELLO[cut:])
        connection.sendall(ACK_TCP[: cut % 4])
        time.sleep(0.01)
        connection.sendall(ACK_TCP[cut % 4 :] + REQUEST[:cut])
        time.sleep(0.01)
        connection.sendall(REQUEST[cut:])
        expect_served(connection)
        connection.close()


@test
def byte_by_byte():
    server = Server()
    connection = greet(server, *(HELLO[i : i + 1] for i in range(len(HELLO))))
    for byte in ACK_TCP + REQUEST:
        connection.sendall(bytes([byte]))
    expect_served(connection)


@test
def all_at_once():
    server = Server()
    connection = greet(server, HELLO + ACK_TCP + REQUEST + REQUEST)
    expect_served(connection)
    expect_served(connection)


@test
def a_hello_with_a_tail_is_refused_alike():
    server = Server()
    connection = greet(server, HELLO[:4] + (48).to_bytes(2, "big") + HELLO[6:] + b"\xa5" * 8)
    connection.sendall(ACK_TCP + REQUEST)
    expect_served(connection)


@test
def an_ack_that_insists_on_rdma_closes_the_connection():
    server = Server()
    connection = greet(server, HELLO)
    connection.sendall(ACK_RDMA)
    expect_closed(connection, 2)
    server.wait_stderr("(?i)rdma|ack")


@test
def plain_tcp_is_served_too():
    server = Server()
    connection = server.connect()
    connection.sendall(REQUEST)
    expect_served(connection)


@test
def an_answer_without_a_cpu_figure_is_brpcs_byte_for_byte_in_its_message():
    server = Server()
    connection = server.connect()
    # The first answer may tell the CPU use; the second comes within the same tenth of a second.
    connection.sendall(REQUEST + REQUEST)
    bodies = []
    for _ in range(2):
        head = receive(connection, 12)
        body = receive(connection, int.from_bytes(head[4:8], "big"))
        bodies.append(body[int.from_bytes(head[8:12], "big") :])
    meta_size = int.from_bytes(RESPONSE[8:12], "big")
    expect_equal(bodies[1].hex(), RESPONSE[12 + meta_size :].hex(), "message and attachment")


if __name__ == "__main__":
    main()
