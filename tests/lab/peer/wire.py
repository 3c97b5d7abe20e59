# SPDX-License-Identifier: Apache-2.0
"""The bytes: the v2 hello, the ACK, and baidu_std frames with as much of protobuf as they need."""

import struct
from collections import namedtuple

HELLO_SIZE = 40
HELLO = struct.Struct(">4sHHHIHHH16sI")
ACK_TCP, ACK_RDMA = bytes(4), bytes((0, 0, 0, 1))
# Both manners of saying "use TCP": of a server that cannot, and of one whose attempt failed.
REFUSALS = tuple(b"RDMA" + struct.pack(">HH", HELLO_SIZE, version) + bytes(32) for version in (0xFFFF, 0))

FRAME = struct.Struct(">4sII")

SERVICE, METHOD = b"test.PerfTestService", b"Test"


class Violation(Exception):
    """The other side has broken a rule."""


def require(condition, message):
    if not condition:
        raise Violation(message)


# ---- hello ----


class Hello(namedtuple("Hello", "block_size sq_size rq_size lid gid qp_num")):
    def encode(self):
        return HELLO.pack(b"RDMA", HELLO_SIZE, 2, 1, self.block_size, self.sq_size, self.rq_size, self.lid, self.gid,
                          self.qp_num)

    def window_with(self, other):
        """How many of this side's data messages may be unreported by the other."""
        return min(self.sq_size, other.rq_size) - 3


def decode_hello(data):
    """A hello that this peer is willing to talk to, or None for a refusal; anything else is a violation."""
    magic, size, version, implementation, block_size, sq_size, rq_size, lid, gid, qp_num = HELLO.unpack(data)
    require(magic == b"RDMA", f"the hello begins with {magic!r}")
    require(size == HELLO_SIZE, f"the hello says that it has {size} bytes")
    if data in REFUSALS:
        return None
    require((version, implementation) == (2, 1), f"the hello has versions {version} and {implementation}")
    require(block_size >= 1024, f"the hello's block size is {block_size}")
    require(16 <= sq_size <= 4096 and 16 <= rq_size <= 4096, f"the hello's queues are {sq_size} and {rq_size} deep")
    require(any(gid), "the hello's GID is all zero")
    require(0 < qp_num < 1 << 24, f"the hello's queue pair number is {qp_num:#x}")
    return Hello(block_size, sq_size, rq_size, lid, gid, qp_num)


# ---- protobuf ----


def put_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_number(field, value):
    return put_varint(field << 3) + put_varint(value)


def put_bytes(field, value):
    return put_varint(field << 3 | 2) + put_varint(len(value)) + value


def get_varint(data, at):
    value = shift = 0
    while True:
        require(at < len(data) and shift < 70, "a protobuf number does not end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & (1 << 64) - 1, at


def get_fields(data):
    """Field numbers and their last values; every wire type but groups."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = get_varint(data, at)
        field, kind = tag >> 3, tag & 7
        if kind == 0:
            fields[field], at = get_varint(data, at)
            continue
        require(kind in (1, 2, 5), f"a protobuf field has wire type {kind}")
        if kind == 2:
            size, at = get_varint(data, at)
        else:
            size = 8 if kind == 1 else 4
        require(at + size <= len(data), "a protobuf field is longer than its message")
        fields[field], at = data[at : at + size], at + size
    return fields


# ---- calls ----


Frame = namedtuple("Frame", "meta message attachment")
Request = namedtuple("Request", "correlation_id echo attachment")
Response = namedtuple("Response", "correlation_id attachment")


def put_frame(meta, message, attachment):
    return b"".join((FRAME.pack(b"PRPC", len(meta) + len(message) + len(attachment), len(meta)), meta, message,
                     attachment))


def take_frame(data):
    """Cuts the first whole frame off a bytearray; None when there is none yet."""
    if len(data) < FRAME.size:
        return None
    magic, body_size, meta_size = FRAME.unpack_from(data)
    require(magic == b"PRPC", f"a frame begins with {magic!r}")
    require(meta_size <= body_size <= 1 << 30, f"a frame of {body_size} bytes with {meta_size} bytes of meta")
    if len(data) < FRAME.size + body_size:
        return None
    with memoryview(data) as view:
        body = bytes(view[FRAME.size : FRAME.size + body_size])
    del data[: FRAME.size + body_size]
    meta = get_fields(body[:meta_size])
    attachment_size = meta.get(5, 0)
    require(attachment_size <= body_size - meta_size, f"an attachment of {attachment_size} bytes in a smaller frame")
    border = body_size - attachment_size
    return Frame(meta, body[meta_size:border], body[border:])


def put_request(request):
    """As brpc encodes it, with the fields that say nothing."""
    meta = put_bytes(1, put_bytes(1, SERVICE) + put_bytes(2, METHOD)) + put_number(3, 0)
    meta += put_number(4, request.correlation_id)
    if request.attachment:
        meta += put_number(5, len(request.attachment))
    meta += put_number(10, 0) + put_number(11, 0) + put_bytes(12, b"")
    return put_frame(meta, put_number(1, int(request.echo)), request.attachment)


def get_request(frame):
    require(1 in frame.meta and 4 in frame.meta, "a request without service or correlation id")
    called = get_fields(frame.meta[1])
    require(called.get(1) == SERVICE and called.get(2) == METHOD, f"a request for {called}")
    require(not frame.meta.get(3), "a compressed request")
    message = get_fields(frame.message)
    require(1 in message, "a request without echo_attachment")
    return Request(frame.meta[4], bool(message[1]), frame.attachment)


# Fields that no reader knows: a map entry of user_fields, and a number from far away.
STRANGE_FIELDS = put_bytes(9, put_bytes(1, b"key") + put_bytes(2, b"value")) + put_number(12345, 1 << 60)


def put_response(response, variant):
    """Success in one of three manners: as brpc encodes it, the least that is needed, with unknown fields."""
    meta = put_bytes(2, put_number(1, 0)) if variant != 1 else put_bytes(2, b"")
    meta += put_number(4, response.correlation_id)
    if variant == 0:
        meta += put_number(3, 0) + put_number(10, 0) + put_number(11, 0) + put_bytes(12, b"")
    if variant == 2:
        meta = STRANGE_FIELDS + meta
    if response.attachment:
        meta += put_number(5, len(response.attachment))
    return put_frame(meta, put_bytes(1, b"" if variant != 2 else b"0.250"), response.attachment)


def get_response(frame):
    require(2 in frame.meta and 4 in frame.meta, "an answer without response meta or correlation id")
    error = get_fields(frame.meta[2])
    require(not error.get(1), f"an answer with error {error.get(1)}: {error.get(2, b'').decode(errors='replace')}")
    require(1 in get_fields(frame.message), "an answer without cpu_usage")
    return Response(frame.meta[4], frame.attachment)
