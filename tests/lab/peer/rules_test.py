#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The foreign peer's arithmetic and encodings, without any device: captured bytes, and two ends by the rules."""

import os
import random
import sys
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "integration"))

import wire
from flow import CREDIT_MODES, Incoming, Outgoing, SOLICIT_MODES
from harness import Failure, expect, expect_equal, main, test, vector

GID = bytes(10) + b"\xff\xff" + bytes((10, 77, 0, 1))


def expect_violation(function, *args):
    try:
        function(*args)
    except wire.Violation:
        return
    raise Failure(f"{function.__name__}{args} found nothing wrong")


# ---- bytes ----


@test
def hellos_as_brpc_sends_them():
    for name, qp_num in (("hello-v2-client", 0x20), ("hello-v2-server", 0x18)):
        hello = wire.Hello(8160, 128, 128, 0, GID, qp_num)
        expect_equal(hello.encode().hex(), vector(name).hex(), name)
        expect_equal(wire.decode_hello(vector(name)), hello, name)
    expect_equal(wire.ACK_RDMA, vector("ack-use-rdma"), "the ACK")


@test
def refusals_and_nonsense():
    good = wire.Hello(8160, 128, 128, 0, GID, 0x20)
    for refusal in wire.REFUSALS:
        expect_equal(wire.decode_hello(refusal), None, "a refusal")
    for change in ({"block_size": 1023}, {"sq_size": 15}, {"rq_size": 4097}, {"gid": bytes(16)}, {"qp_num": 0}):
        expect_violation(wire.decode_hello, good._replace(**change).encode())
    for at, value in ((0, 0x53), (5, 41), (7, 3), (9, 0)):
        data = bytearray(good.encode())
        data[at] = value
        expect_violation(wire.decode_hello, bytes(data))


@test
def calls_as_brpc_makes_them():
    data = vector("rpc-echo16-request")
    request = wire.get_request(wire.take_frame(bytearray(data)))
    expect_equal((request.echo, len(request.attachment)), (True, 16), "the request")
    expect_equal(len(wire.put_request(request)), len(data), "the request's size when encoded")
    for name, attachment in (("rpc-echo16-response", request.attachment), ("rpc-warmup-response", b"")):
        response = wire.get_response(wire.take_frame(bytearray(vector(name))))
        expect_equal(response.attachment, attachment, name)


@test
def frames_in_pieces():
    frames = [wire.put_response(wire.Response(1 << 62, bytes(size)), size % 3) for size in (0, 1, 2, 70000)]
    stream, data, found = b"".join(frames), bytearray(), []
    for at in range(0, len(stream), 11):
        data += stream[at : at + 11]
        while frame := wire.take_frame(data):
            found.append(wire.get_response(frame))
    expect_equal([len(response.attachment) for response in found], [0, 1, 2, 70000], "the attachments")
    expect_equal({response.correlation_id for response in found}, {1 << 62}, "the correlation ids")
    expect_violation(wire.take_frame, bytearray(b"PRPX" + bytes(8)))


# ---- windows ----


class End:
    """One side of a wire, driven by hand: messages lie in its receive queue until it looks."""

    def __init__(self, own_sq, own_rq, peer_sq, peer_rq, mode, solicit):
        window, peer_window = min(own_sq, peer_rq) - 3, min(own_rq, peer_sq) - 3
        self.outgoing = Outgoing(window, peer_window, solicit)
        self.incoming = Incoming(peer_window, 8160, mode)
        self.receive_queue, self.rq_size, self.unasked = deque(), own_rq, 0
        self.queued, self.completions = 0, deque()

    def post(self, peer, size, credits_, solicited, covered):
        expect(len(peer.receive_queue) < peer.rq_size, "a message finds no receive")
        peer.receive_queue.append((size, credits_))
        peer.unasked = 0 if solicited else peer.unasked + 1
        if covered is not None:
            self.completions.append(covered)

    def turn(self, peer, receives):
        for _ in range(min(receives, len(self.receive_queue))):
            size, credits_ = self.receive_queue.popleft()
            self.incoming.take_message(size, credits_)
            self.outgoing.take_credits(credits_)
        while self.completions:
            self.outgoing.completed(self.completions.popleft())
        while self.queued and self.outgoing.open():
            self.queued -= 1
            credits_ = self.incoming.piggyback()
            solicited, covered = self.outgoing.charge(100, credits_, self.queued == 0)
            self.post(peer, 100, credits_, solicited, covered or None)
        while self.incoming.ack_due(self.outgoing):
            self.outgoing.charge_ack()
            self.post(peer, 0, self.incoming.take_ack(self.outgoing), True, 0)


def converse(rng, modes, solicit):
    """Two ends of random depths exchange messages in random portions until all have come."""
    sizes = [rng.randrange(16, 40) for _ in range(4)]
    ends = (End(sizes[0], sizes[1], sizes[2], sizes[3], modes[0], solicit),
            End(sizes[2], sizes[3], sizes[0], sizes[1], modes[1], solicit))
    for end in ends:
        end.queued = 300
    total = 600
    for _ in range(20000):
        side = rng.randrange(2)
        ends[side].turn(ends[1 - side], rng.randrange(0, 12))
        if sum(end.incoming.received for end in ends) == total:
            break
    expect_equal([end.incoming.received for end in ends], [300, 300], f"what came, {modes}, queues {sizes}")
    for end in ends:
        expect_equal(end.unasked, 0, f"messages behind the last solicited one, {modes}, queues {sizes}")


@test
def every_pair_of_credit_modes_moves_on():
    rng = random.Random(7)
    for ours in CREDIT_MODES:
        for theirs in CREDIT_MODES:
            for solicit in SOLICIT_MODES:
                for _ in range(5):
                    converse(rng, (ours, theirs), solicit)


@test
def a_window_too_wide_is_a_violation():
    incoming = Incoming(13, 8160, "late")
    for _ in range(13):
        incoming.take_message(1, 0)
    expect_violation(incoming.take_message, 1, 0)
    expect_violation(Incoming(13, 8160, "brpc").take_message, 8161, 0)


@test
def credits_too_many_are_a_violation():
    outgoing = Outgoing(13, 13, "minimal")
    for _ in range(3):
        outgoing.charge(1, 0, True)
    outgoing.take_credits(2)
    expect_violation(outgoing.take_credits, 2)


@test
def credits_kept_for_ever_are_a_violation():
    outgoing = Outgoing(125, 125, "minimal")
    for _ in range(63):
        outgoing.charge(1, 0, True)
        outgoing.completed(0)
    outgoing.check_at_rest()
    outgoing.charge(1, 0, True)
    expect_violation(outgoing.check_at_rest)


if __name__ == "__main__":
    main()
