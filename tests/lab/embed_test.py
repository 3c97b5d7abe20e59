#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Workers in loops that are not the library's, over RDMA: completion channels wake through two epoll sets."""

from lab import ADDRESS, PATIENCE
from embedded import ping_pong
from harness import main, test

ROUNDS = 600


@test
def two_loops_play_ping_pong_by_events():
    ping_pong("event", ADDRESS, "rdma", ROUNDS, *PATIENCE)


@test
def two_loops_play_ping_pong_adaptively():
    ping_pong("adaptive", ADDRESS, "rdma", ROUNDS, *PATIENCE)


if __name__ == "__main__":
    main()
