#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""64 connections over RDMA with 32 receives each, on a pool of 64 MiB, of which 8 do not read."""

from lab import RdmaClient, RdmaServer, PATIENCE
from limit import LateReader, POOL, compare
from harness import expect, expect_equal, main, test

QUEUES = ("--rdma_rq_size", 32, "--rdma_sq_size", 32)


def make_server(*args):
    return RdmaServer(*QUEUES, *args, mode="event")


def make_client(address, *args):
    return RdmaClient(address, *QUEUES, "--queue_depth", 2, "--attachment_size", 16384, "--test_seconds", 4,
                      "--rpc_timeout_ms", 60000, *args, mode="event")


def make_reader(address, *args):
    return LateReader(address, *QUEUES, *PATIENCE, "--use_rdma", *args)


@test
def connections_that_do_not_read_stop_no_other():
    compare(make_server, make_client, make_reader, calls=100, rounds=1)


@test
def receives_that_do_not_fit_go_to_tcp_with_the_figures():
    server = RdmaServer(POOL, "--rdma_rq_size", 512, mode="event")
    client = RdmaClient(server.address, "--queue_depth", 1, "--attachment_size", 4096, "--thread_num", 12,
                        "--test_iterations", 3, "--rdma_rq_size", 32, mode="event")
    client.finish(timeout=60)
    result = client.result()
    expect_equal((result["errors"], result["calls"], result["transport"]), (0, 36, "mixed"), "the result")
    says = server.wait_stderr(r"goes to TCP: the pool has no blocks for it to receive into: 4096 KiB needed "
                              r"\(512 default blocks\), (\d+) KiB available for that \(--pool_max_mb, ")
    expect(int(says.group(1)) < 4096, f"{says.group(1)} KiB are enough")
    counters = server.stop()
    expect_equal(counters["rdma_connections"], 8, "RDMA connections, whose receives have half of the pool")


if __name__ == "__main__":
    main()
