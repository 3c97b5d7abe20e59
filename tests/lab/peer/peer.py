#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A peer of foreign make: speaks brpc's wire over RDMA in both roles, and holds the other side to its rules.

    peer.py --role server [--address 10.77.0.1:0]      says "listening on ADDRESS", serves one connection
    peer.py --role client --address 10.77.0.1:8002     calls test.PerfTestService/Test and compares what comes back

It stands on python3-pyverbs and the description of the protocol, on nothing of this project, so that a misreading on
our side meets a different reader. It exits with 0 and one line of JSON that counts, or with 1 and one line that says
which rule was broken.
"""

import argparse
import json
import os
import random
import select
import socket
import sys
import time

import flow
import misdeed
import wire
from link import FORGOTTEN_S, RdmaLink, TcpLink
from verbs import Device, Queue, gid_of_address
from wire import Violation, require

SIZES = (0, 1, 64, 511, 512, 8160, 8161, 65536)
QUIET_S = 0.05


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", required=True, choices=("client", "server"))
    parser.add_argument("--address", default="10.77.0.1:0", help="HOST:PORT to call or to listen on")
    parser.add_argument("--device", default="rxe0")
    parser.add_argument("--cpu", type=int, help="processor to run on")
    parser.add_argument("--gid-index", type=int, help="instead of the GID of the connection's local address")
    parser.add_argument("--sq", type=int, default=128, help="own send queue")
    parser.add_argument("--rq", type=int, default=128, help="own receive queue")
    parser.add_argument("--block-size", type=int, default=8160, help="own receives")
    parser.add_argument("--credit-mode", default="brpc", choices=flow.CREDIT_MODES)
    parser.add_argument("--late-ms", type=float, default=20, help="pause of mode late")
    parser.add_argument("--solicit", default="minimal", choices=flow.SOLICIT_MODES)
    parser.add_argument("--cut", default="full", choices=("full", "random"), help="lengths of sent messages")
    parser.add_argument("--wait", default="poll", choices=("poll", "event"))
    parser.add_argument("--messages", type=int, default=1000, help="calls of a client")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES,
                        help="attachments, by turns")
    parser.add_argument("--depth", type=int, default=16, help="calls in flight")
    parser.add_argument("--idle", type=float, default=0.3, help="seconds at rest before a client closes")
    parser.add_argument("--fallback", default="none", choices=("none", "refuse", "ack-0", "bad-hello"),
                        help="server: refuse; client: ACK 0 after good hellos, or a hello that nobody can accept")
    parser.add_argument("--misbehave", default="none", choices=("none", *misdeed.NAMES),
                        help="break a rule, for tests of those that watch it")
    parser.add_argument("--hoarder", action="store_true", help="the other side may keep all its credits at rest")
    parser.add_argument("--stall", type=float, default=20, help="seconds without progress that are too many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cut-off", action="store_true", help="the other side may end in the middle of its work")
    return parser.parse_args()


def split_address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def receive(connection, size, what):
    data = b""
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except socket.timeout as error:
            raise Violation(f"{what}: only {data.hex() or 'nothing'} came") from error
        require(part, f"{what}: the connection ended after {data.hex() or 'nothing'}")
        data += part
    return data


def expect_quiet(connection, what):
    """Nobody may say more than the protocol has it say."""
    if select.select([connection], [], [], QUIET_S)[0]:
        raise Violation(f"{what} is followed by {connection.recv(64).hex() or 'the end'}")


# ---- handshake ----


class Handshake:
    """Brings up a link over a fresh TCP connection."""

    def __init__(self, connection, device, options):
        self._connection, self._device, self._options = connection, device, options
        self._random = random.Random(options.seed)
        self.hellos = {}

    def _open_queue(self):
        options = self._options
        gid_index, gid = self._device.find_gid(self._connection.getsockname()[0], options.gid_index)
        queue = Queue(self._device, gid_index, options.sq, options.rq, options.block_size)
        queue.prepare()
        return queue, wire.Hello(options.block_size, options.sq, options.rq, self._device.lid, gid, queue.qp_num)

    def _read_hello(self):
        hello = wire.decode_hello(receive(self._connection, wire.HELLO_SIZE, "a hello"))
        if hello:
            self.hellos["hello"] = {"block_size": hello.block_size, "sq": hello.sq_size, "rq": hello.rq_size}
            self._check_gid(hello)
        return hello

    def _check_gid(self, hello):
        if hello.lid == 0:
            expected = gid_of_address(self._connection.getpeername()[0])
            require(hello.gid == expected, f"the hello's GID is {hello.gid.hex()}, its address's is {expected.hex()}")

    def _link(self, queue, own, peer):
        options = self._options
        window, peer_window = own.window_with(peer), peer.window_with(own)
        queue.connect(peer, window)
        outgoing = misdeed.OUTGOING.get(options.misbehave, flow.Outgoing)(window, peer_window, options.solicit)
        incoming = misdeed.INCOMING.get(options.misbehave, flow.Incoming)(peer_window, options.block_size, options.credit_mode)
        cut = (lambda: 1 << 30) if options.cut == "full" else (lambda: self._random.choice(cuts))
        cuts = (1, 7, 64, 511, 512, 4096, 8160, 1 << 30)
        return RdmaLink(self._connection, queue, outgoing, incoming, options, cut)

    def call(self):
        """A client's part."""
        queue, own = self._open_queue()
        hello = own.encode()
        if self._options.fallback == "bad-hello":
            hello = wire.Hello(own.block_size, 10, 10, own.lid, own.gid, own.qp_num).encode()
        self._connection.sendall(hello)
        peer = self._read_hello()
        expect_quiet(self._connection, "the server's hello")
        if self._options.fallback == "bad-hello":
            require(peer is None, "a hello with queues of 10 was accepted")
        if peer is None or self._options.fallback == "ack-0":
            self._connection.sendall(wire.ACK_TCP)
            time.sleep(QUIET_S)
            queue.close()
            return TcpLink(self._connection)
        link = self._link(queue, own, peer)
        self._connection.sendall(wire.ACK_RDMA)
        if self._options.misbehave == "tcp-byte":
            self._connection.sendall(b"x")
        return link

    def answer(self):
        """A server's part; a client that offers nothing is served as it is."""
        magic = self._peek(4)
        if magic == b"PRPC":
            return TcpLink(self._connection)
        peer = self._read_hello()
        require(peer, "a client sent a refusal")
        expect_quiet(self._connection, "the client's hello")
        if self._options.fallback == "refuse":
            self._connection.sendall(wire.REFUSALS[0])
            self._read_ack(wire.ACK_TCP)
            return TcpLink(self._connection)
        queue, own = self._open_queue()
        link = self._link(queue, own, peer)
        self._connection.sendall(own.encode())
        self._read_ack(wire.ACK_RDMA)
        return link

    def _peek(self, size):
        deadline = time.monotonic() + self._options.stall
        while len(data := self._connection.recv(size, socket.MSG_PEEK)) < size:
            require(data, "the connection ended before its first bytes")
            require(time.monotonic() < deadline, f"the connection begins with {data.hex()} and no more")
            time.sleep(0.01)
        return data

    def _read_ack(self, expected):
        ack = receive(self._connection, 4, "the ACK")
        require(ack == expected, f"the ACK is {ack.hex()}, expected {expected.hex()}")


# ---- calls ----


class Session:
    """Turns of a link, its input cut into frames, and an eye on progress."""

    def __init__(self, link, options):
        self.link, self.options = link, options
        self._input = bytearray()
        self._moved = time.monotonic()
        self.calls = self.attachment_bytes = 0

    def frames(self, timeout=FORGOTTEN_S):
        """The whole frames that a turn has brought."""
        data = self.link.turn(timeout)
        if self.link.ended and self.link.transport == "rdma":
            data += self.link.drain()
        self._input += data
        if data:
            self._moved = time.monotonic()
        while frame := wire.take_frame(self._input):
            yield frame

    def check_progress(self, what):
        quiet = time.monotonic() - self._moved
        require(quiet < self.options.stall, f"nothing came for {quiet:.0f} s, {what}: {self.link.describe()}")

    def check_end(self):
        """Both directions have ended between two frames."""
        require(not self._input, f"the connection ended in the middle of a frame, {len(self._input)} bytes of it there")

    def check_credits(self):
        if not self.options.hoarder:
            self.link.check_at_rest()

    def counts(self):
        return {"transport": self.link.transport, "calls": self.calls, "attachment_bytes": self.attachment_bytes,
                **self.link.counts()}


class Client(Session):
    def __init__(self, link, options):
        super().__init__(link, options)
        self._random = random.Random(options.seed)
        self._bytes = self._random.randbytes(max(options.sizes) + 4096)
        self._waiting = {}
        self._begun = 0

    def _begin(self):
        size = self.options.sizes[self._begun % len(self.options.sizes)]
        at = self._random.randrange(4096)
        attachment = self._bytes[at : at + size]
        correlation_id = self._random.getrandbits(63)
        self._waiting[correlation_id] = attachment
        self._begun += 1
        self.link.send(wire.put_request(wire.Request(correlation_id, True, attachment)))

    def _end(self, response):
        attachment = self._waiting.pop(response.correlation_id, None)
        require(attachment is not None, f"an answer with correlation id {response.correlation_id:#x}, never asked for")
        require(response.attachment == attachment, f"an attachment of {len(attachment)} bytes came back different")
        self.calls += 1
        self.attachment_bytes += len(attachment)

    def run(self):
        while self.calls < self.options.messages:
            while len(self._waiting) < self.options.depth and self._begun < self.options.messages:
                self._begin()
            for frame in self.frames():
                self._end(wire.get_response(frame))
            require(not self.link.ended or self.calls == self.options.messages,
                    f"the server closed with {len(self._waiting)} calls unanswered")
            self.check_progress(f"{len(self._waiting)} calls wait")
        self._rest()

    def _rest(self):
        print("resting", flush=True)
        until = time.monotonic() + self.options.idle
        while (left := until - time.monotonic()) > 0:
            for frame in self.frames(left):
                raise Violation(f"a frame came with no call waiting: {frame}")
        require(not self.link.ended, "the server closed the connection of an idle client")
        self.check_end()
        self.check_credits()


class Server(Session):
    def run(self):
        while not self.link.ended:
            for frame in self.frames():
                request = wire.get_request(frame)
                attachment = request.attachment if request.echo else b""
                response = wire.Response(request.correlation_id, attachment)
                self.link.send(wire.put_response(response, self.calls % 3))
                self.calls += 1
                self.attachment_bytes += len(attachment)
            if not self.link.idle():
                self.check_progress("answers wait")
        if not self.options.cut_off:
            self.check_end()
            require(self.link.idle(), f"the client closed before its answers had left: {self.link.describe()}")
            self.check_credits()


def connect(options):
    address = split_address(options.address)
    if options.role == "client":
        return socket.create_connection(address, options.stall)
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.create_server(address, family=family) as listener:
        host, port = listener.getsockname()[:2]
        print(f"listening on {f'[{host}]' if ':' in host else host}:{port}", flush=True)
        listener.settimeout(60)
        connection, _ = listener.accept()
    connection.settimeout(options.stall)
    return connection


def run(options):
    device = Device(options.device)
    connection = connect(options)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handshake = Handshake(connection, device, options)
    link = handshake.call() if options.role == "client" else handshake.answer()
    connection.setblocking(False)
    session = (Client if options.role == "client" else Server)(link, options)
    begin = time.monotonic()
    try:
        session.run()
    except Violation as what:
        raise Violation(f"{what} [{json.dumps(session.counts())}]") from what
    seconds = time.monotonic() - begin
    print(json.dumps({**session.counts(), **handshake.hellos, "seconds": round(seconds, 3)}), flush=True)
    link.close()


def main():
    options = parse_arguments()
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    try:
        run(options)
    except Violation as what:
        print(f"peer {options.role}: {what}", file=sys.stderr, flush=True)
    except Exception:  # no finding about the other side: where it happened matters
        import traceback

        print(f"peer {options.role}: {traceback.format_exc()}", file=sys.stderr, flush=True)
    else:
        return
    # The queue pair goes with the process: until then its memory may be written to.
    os._exit(1)


if __name__ == "__main__":
    main()
