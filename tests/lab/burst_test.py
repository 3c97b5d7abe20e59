#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Bursts and silences of random length over RDMA: no wake-up is lost, and few are for nothing."""

from lab import RdmaClient, RdmaServer
from bursts import BURSTS, NO_CAP, expect_bursts
from harness import main, test


def bursts(mode):
    server = RdmaServer(*NO_CAP, mode=mode)
    client = RdmaClient(server.address, *BURSTS, mode=mode)
    expect_bursts(server, client, client.finish_clean())


@test
def an_event_driven_pair_misses_nothing():
    bursts("event")


@test
def an_adaptive_pair_misses_nothing():
    bursts("adaptive")


if __name__ == "__main__":
    main()
