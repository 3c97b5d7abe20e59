# SPDX-License-Identifier: Apache-2.0
"""A reliable connected queue pair on python3-pyverbs, with brpc's attributes and memory of its own."""

import os
import socket

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

from wire import require

PORT = 1
PATH_MTU = e.IBV_MTU_1024
SEND_MEMORY = 64 << 20


def gid_text(raw):
    return ":".join(raw[i : i + 2].hex() for i in range(0, 16, 2))


def gid_of_address(address):
    """The GID that stands for an IP address on RoCE."""
    if ":" in address:
        return socket.inet_pton(socket.AF_INET6, address)
    return bytes(10) + b"\xff\xff" + socket.inet_pton(socket.AF_INET, address)


def event_descriptors():
    """The completion channels among this process's file descriptors."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "infinibandevent" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(int(fd))
        except FileNotFoundError:  # the one that listed the folder
            pass
    return found


class Device:
    def __init__(self, name):
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.lid = self.context.query_port(PORT).lid

    def find_gid(self, address, index):
        """(index, raw): the one asked for, else the RoCE v2 entry of a local address."""
        wanted = gid_of_address(address)
        for entry in self.context.query_gid_table(1024):
            raw = socket.inet_pton(socket.AF_INET6, entry.gid_str())
            if entry.port_num == PORT and (entry.gid_index == index if index is not None else
                                           raw == wanted and entry.gid_type == e.IBV_GID_TYPE_ROCE_V2):
                return entry.gid_index, raw
        raise LookupError(f"{self.context.name} has no RoCE v2 GID for {address}"
                          if index is None else f"{self.context.name} has no GID {index}")


class Queue:
    """The queue pair, its two completion queues, and registered slots to send from and receive into."""

    def __init__(self, device, gid_index, sq_size, rq_size, block_size):
        self._device, self._gid_index, self._rq_size, self._block_size = device, gid_index, rq_size, block_size
        self.receive_channel, self.receive_fd = self._open_channel()
        self.send_channel, self.send_fd = self._open_channel()
        self.receive_cq = CQ(device.context, rq_size, None, self.receive_channel, 0)
        self.send_cq = CQ(device.context, sq_size, None, self.send_channel, 0)
        capabilities = QPCap(max_send_wr=sq_size, max_recv_wr=rq_size, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.send_cq, rcq=self.receive_cq, cap=capabilities, sq_sig_all=0)
        self._qp = QP(device.pd, init)
        self.qp_num = self._qp.qp_num
        self._make_receives()
        self._sends, self.send_size = [], 0

    def _open_channel(self):
        """A completion channel and its file descriptor, which pyverbs keeps to itself."""
        before = event_descriptors()
        channel = CompChannel(self._device.context)
        new = event_descriptors() - before
        require(len(new) == 1, f"a new completion channel has the descriptors {new}")
        return channel, new.pop()

    def _make_receives(self):
        self._receive_mr = MR(self._device.pd, self._rq_size * self._block_size, e.IBV_ACCESS_LOCAL_WRITE)
        self._receives = []
        for slot in range(self._rq_size):
            address = self._receive_mr.buf + slot * self._block_size
            piece = SGE(address, self._block_size, self._receive_mr.lkey)
            self._receives.append(RecvWR(wr_id=slot, num_sge=1, sg=[piece]))

    def _make_sends(self, slots, largest):
        """A work request a slot; two slots more would be one too many for the window."""
        self.send_size = min(largest, SEND_MEMORY // slots)
        self._send_mr = MR(self._device.pd, slots * self.send_size, e.IBV_ACCESS_LOCAL_WRITE)
        for slot in range(slots):
            piece = SGE(self._send_mr.buf + slot * self.send_size, 0, self._send_mr.lkey)
            request = SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=[piece])
            request.sg_list = piece  # the request then looks at this piece, whose length changes
            self._sends.append((piece, request))
        self._ack = SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1, sg=[piece])
        self._ack.num_sge = 0
        self._ack.send_flags = e.IBV_SEND_SIGNALED | e.IBV_SEND_SOLICITED

    # ---- bring-up ----

    def prepare(self):
        """INIT, and every receive posted: what must be done before the own hello leaves."""
        attributes = QPAttr(port_num=PORT)
        attributes.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        attributes.pkey_index = 0
        self._qp.to_init(attributes)
        for slot in range(self._rq_size):
            self.repost(slot)

    def connect(self, hello, slots):
        """RTR and RTS towards the queue pair that a hello names."""
        route = GlobalRoute(dgid=GID(gid_text(hello.gid)), sgid_index=self._gid_index, hop_limit=16)
        attributes = QPAttr(port_num=PORT)
        attributes.path_mtu = PATH_MTU
        attributes.dest_qp_num = hello.qp_num
        attributes.rq_psn = attributes.sq_psn = 0
        attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 0
        attributes.min_rnr_timer = 0
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 7, 0
        attributes.ah_attr = AHAttr(dlid=hello.lid, is_global=1, port_num=PORT, gr=route)
        self._to_rtr(attributes)
        self._qp.to_rts(attributes)
        self._make_sends(slots, hello.block_size)

    def _to_rtr(self, attributes):
        """By hand: pyverbs' own way goes through INIT a second time."""
        attributes.qp_state = e.IBV_QPS_RTR
        self._qp.modify(attributes, e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN |
                        e.IBV_QP_RQ_PSN | e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)

    # ---- messages ----

    def repost(self, slot):
        self._qp.post_recv(self._receives[slot])

    def send(self, slot, payload, credits_, solicited, covered):
        piece, request = self._sends[slot]
        self._send_mr.write(payload, len(payload), slot * self.send_size)
        piece.length = len(payload)
        request.imm_data = socket.htonl(credits_)
        request.wr_id = covered
        request.send_flags = (e.IBV_SEND_SOLICITED if solicited else 0) | (e.IBV_SEND_SIGNALED if covered else 0)
        self._qp.post_send(request)

    def send_ack(self, credits_):
        self._ack.imm_data = socket.htonl(credits_)
        self._ack.wr_id = 0
        self._qp.post_send(self._ack)

    def poll_receives(self, most=32):
        """[(slot, size, credits)] of messages that came."""
        messages = []
        for completion in self.receive_cq.poll(most)[1]:
            self._check(completion, "receive")
            require(completion.opcode == e.IBV_WC_RECV and completion.wc_flags & e.IBV_WC_WITH_IMM,
                    f"a message with opcode {completion.opcode} and flags {completion.wc_flags:#x}, no SEND_WITH_IMM")
            messages.append((completion.wr_id, completion.byte_len, socket.ntohl(completion.imm_data)))
        return messages

    def read(self, slot, size):
        return self._receive_mr.read(size, slot * self._block_size)

    def poll_sends(self):
        """What each signaled completion covers; 0 for a pure ACK."""
        completions = self.send_cq.poll(32)[1]
        for completion in completions:
            self._check(completion, "send")
        return [completion.wr_id for completion in completions]

    @staticmethod
    def _check(completion, what):
        require(completion.status == e.IBV_WC_SUCCESS,
                f"a {what} completed with status {completion.status} (vendor {completion.vendor_err:#x})")

    # ---- events ----

    def arm(self):
        """Solicited messages only, as brpc does it; any send completion."""
        self.receive_cq.req_notify(True)
        self.send_cq.req_notify(False)

    def take_event(self, fd):
        channel, cq = ((self.receive_channel, self.receive_cq) if fd == self.receive_fd else
                       (self.send_channel, self.send_cq))
        channel.get_cq_event(cq)
        cq.ack_events(1)

    def close(self):
        for resource in (self._qp, self.receive_cq, self.send_cq, self.receive_channel, self.send_channel):
            resource.close()
