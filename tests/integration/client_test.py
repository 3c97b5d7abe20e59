#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What xr-perf's client makes of a server that answers wrongly, played by a few lines of baidu_std."""

import re
import socket
import struct
import threading
import time

from harness import Client, Failure, SLACK, expect, expect_equal, main, receive, test


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The varint and bytes fields of a protobuf message."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        found[tag >> 3] = value
    return found


def put_varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


class Call:
    """One request as it came."""

    def __init__(self, connection):
        head = receive(connection, 12)
        body_size, meta_size = struct.unpack(">4xII", head)
        body = receive(connection, body_size)
        meta = fields(body[:meta_size])
        self.correlation_id, attachment_size = meta[4], meta.get(5, 0)
        self.attachment = body[body_size - attachment_size :] if attachment_size else b""
        self.message = body[meta_size : body_size - attachment_size]


def answer(connection, correlation_id, message=b"\x0a\x00", attachment=b"", error=None):
    response = b"" if error is None else b"\x08" + put_varint(error[0]) + b"\x12" + put_varint(len(error[1])) + error[1]
    meta = b"\x12" + put_varint(len(response)) + response + b"\x20" + put_varint(correlation_id)
    if attachment:
        meta += b"\x28" + put_varint(len(attachment))
    if error is not None:
        message = b""
    connection.sendall(b"PRPC" + struct.pack(">II", len(meta) + len(message) + len(attachment), len(meta)) + meta +
                       message + attachment)


class FakeServer:
    """Serves one connection with a function, which may raise or return to close it. The warm-up is answered here."""

    def __init__(self, serve):
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(20 * SLACK)
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(20 * SLACK)
                answer(connection, Call(connection).correlation_id)
                self._serve(connection)
        except (OSError, Failure):
            pass
        self._listener.close()


def run_client(serve, *args, status=1):
    client = Client(FakeServer(serve).address, "--attachment_size", 100, "--echo_attachment", "--test_seconds", 3,
                    *args)
    client.finish(status=status)
    return client.result()


def expect_error(result, words):
    expect(result["errors"] > 0, "no error is counted")
    expect(re.search(words, result["first_error"]), f"the first error is \"{result['first_error']}\"")


@test
def an_honest_server_is_believed():
    def serve(connection):
        while True:
            call = Call(connection)
            answer(connection, call.correlation_id, b"\x0a\x050.250", call.attachment)

    result = run_client(serve, "--test_iterations", 20, status=0)
    expect_equal((result["calls"], result["errors"], result["cpu_server"]), (20, 0, 0.25), "the figures")


@test
def a_changed_byte_is_found():
    def serve(connection):
        call = Call(connection)
        answer(connection, call.correlation_id, attachment=call.attachment[:-1] + bytes([call.attachment[-1] ^ 1]))
        time.sleep(1)

    expect_error(run_client(serve), "differs")


@test
def a_missing_byte_is_found():
    def serve(connection):
        call = Call(connection)
        answer(connection, call.correlation_id, attachment=call.attachment[:-1])
        time.sleep(1)

    expect_error(run_client(serve), "differs")


@test
def swapped_answers_are_found():
    def serve(connection):
        first, second = Call(connection), Call(connection)
        answer(connection, first.correlation_id, attachment=second.attachment)
        answer(connection, second.correlation_id, attachment=first.attachment)
        time.sleep(1)

    expect_error(run_client(serve, "--queue_depth", 2), "differs")


@test
def answers_in_another_order_are_fine():
    def serve(connection):
        while True:
            calls = [Call(connection) for _ in range(4)]
            for call in reversed(calls):
                answer(connection, call.correlation_id, attachment=call.attachment)

    result = run_client(serve, "--queue_depth", 4, "--test_iterations", 20, status=0)
    expect_equal(result["calls"], 20, "calls")


@test
def an_attachment_that_was_not_asked_for_is_found():
    def serve(connection):
        answer(connection, Call(connection).correlation_id, attachment=b"surprise")
        time.sleep(1)

    expect_error(run_client(serve, "--noecho_attachment"), "not asked for")


@test
def a_message_that_does_not_parse_is_found():
    def serve(connection):
        call = Call(connection)
        answer(connection, call.correlation_id, b"\xff\xff\xff", call.attachment)
        time.sleep(1)

    expect_error(run_client(serve), "PerfTestResponse")


@test
def the_servers_own_error_is_told():
    def serve(connection):
        answer(connection, Call(connection).correlation_id, error=(2004, b"come back later"))
        time.sleep(1)

    expect_error(run_client(serve), "come back later.*2004")


@test
def silence_runs_into_the_timeout():
    def serve(connection):
        Call(connection)
        time.sleep(10)

    expect_error(run_client(serve, "--rpc_timeout_ms", 300), "1008")


@test
def a_close_in_the_middle_of_an_answer_is_an_error():
    def serve(connection):
        Call(connection)
        connection.sendall(b"PRPC\0\0")

    expect_error(run_client(serve), "1014|1009")


@test
def garbage_for_an_answer_is_an_error():
    def serve(connection):
        Call(connection)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        time.sleep(2)

    expect_error(run_client(serve), "error (1009|1014|2002|-71)")


@test
def answers_to_calls_never_made_are_left_alone():
    def serve(connection):
        while True:
            call = Call(connection)
            answer(connection, call.correlation_id + 1000, attachment=call.attachment)
            answer(connection, call.correlation_id, attachment=call.attachment)

    result = run_client(serve, "--test_iterations", 5, status=0)
    expect_equal(result["calls"], 5, "calls")


if __name__ == "__main__":
    main()
