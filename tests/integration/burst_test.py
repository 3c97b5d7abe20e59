#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Bursts and silences of random length over TCP: no wake-up is lost, and few are for nothing."""

from bursts import BURSTS, NO_CAP, SECONDS, expect_bursts
from harness import Client, Server, main, test


def bursts(mode):
    server = Server(*NO_CAP, mode=mode)
    client = Client(server.address, *BURSTS, "--echo_attachment", "--rpc_timeout_ms", 20000, mode=mode)
    expect_bursts(server, client, client.finish(timeout=SECONDS + 10).result())


@test
def an_event_driven_pair_misses_nothing():
    bursts("event")


@test
def an_adaptive_pair_misses_nothing():
    bursts("adaptive")


if __name__ == "__main__":
    main()
