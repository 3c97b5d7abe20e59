#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The foreign peer against itself: what it demands of others it must be able to do."""

from lab import PeerClient, PeerServer
from harness import expect, expect_equal, main, test

CREDIT_MODES = ("brpc", "ones", "halves", "late")


def talk(server_args, client_args, calls=200):
    """A whole conversation; the counts of both sides, which must agree."""
    server = PeerServer(*server_args)
    client = PeerClient(server.address, "--messages", calls, *client_args)
    sides = client.counts(), server.counts()
    for side, other in (sides, sides[::-1]):
        expect_equal(side["transport"], "rdma", "transport")
        expect_equal(side["calls"], calls, "calls")
        expect_equal(side["sent"], other["received"], "messages")
        # The last pure ACK may still be under way when the connection ends.
        expect(other["acks"] <= side["acks_sent"] <= other["acks"] + 1, f"pure ACKs: {side} and {other}")
    return sides


@test
def credits_by_brpcs_rule():
    talk((), ())


@test
def credits_in_ones():
    client, server = talk(("--credit-mode", "ones", "--wait", "event"), ("--credit-mode", "ones"))
    expect(client["acks_sent"] > 20 and server["acks_sent"] > 20, f"few pure ACKs: {client}, {server}")


@test
def credits_in_halves_with_the_smallest_queues():
    client, _ = talk(("--credit-mode", "halves", "--sq", 16, "--rq", 16),
                     ("--credit-mode", "halves", "--sq", 16, "--rq", 16, "--wait", "event"))
    expect(client["stalls"] > 0 and client["high_water"] <= 13, f"windows of 13: {client}")


@test
def credits_only_when_the_window_is_closed():
    client, server = talk(("--credit-mode", "late", "--sq", 20, "--wait", "event", "--hoarder"),
                          ("--credit-mode", "late", "--rq", 24, "--wait", "event", "--hoarder"))
    expect_equal((client["high_water"], server["high_water"]), (17, 125), "unreported messages at most")


@test
def messages_cut_anywhere():
    talk(("--cut", "random", "--solicit", "brpc", "--wait", "event"),
         ("--cut", "random", "--seed", 2, "--solicit", "brpc", "--wait", "event"))


@test
def blocks_of_every_size():
    client, server = talk(("--block-size", 65504), ("--block-size", 2097120, "--rq", 16, "--sizes", "300000"), calls=20)
    expect_equal(server["largest"], 65504, "largest message to the server")
    expect(client["largest"] > 300000, f"the answers were cut: {client}")


@test
def a_refusal_leads_to_tcp():
    server = PeerServer("--fallback", "refuse")
    client = PeerClient(server.address, "--messages", 50)
    expect_equal(client.counts()["transport"], "tcp", "transport")
    expect_equal(server.counts()["calls"], 50, "calls")


def expect_found(misdeed, words, *args):
    """A client that breaks a rule is found out by the server."""
    server = PeerServer("--wait", "event", *args)
    client = PeerClient(server.address, "--misbehave", misdeed, "--depth", 32)
    server.finish(status=1, timeout=20)
    expect(words in server.stderr.text(), server.stderr.text())
    client.kill()


@test
def a_forgotten_solicited_flag_is_found():
    expect_found("unsolicited", "none of them was solicited")


@test
def a_message_beyond_the_window_is_found():
    expect_found("overrun", "unreported messages in a window of 13", "--rq", 16, "--credit-mode", "late")


@test
def a_credit_too_many_is_found():
    expect_found("overcredit", "credits came while")


@test
def an_empty_message_is_found():
    expect_found("empty", "an empty one without credits")


@test
def a_byte_on_tcp_is_found():
    expect_found("tcp-byte", "bytes came on the TCP connection")


if __name__ == "__main__":
    main()
