#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Default flags in a guest of 512 MiB: every call is answered, no connection is lost, nobody is killed for memory."""

import contextlib
import os
import re
import subprocess

from lab import IN_GUEST, RdmaClient, RdmaServer
from harness import Skip, expect, expect_equal, main, test

TOTAL_LIMIT_KIB = 600 << 10
FILLER = "/dev/shm/filler"


def memory(name):
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(rf"^{name}:\s+(\d+) kB$", file.read(), re.M).group(1))


def expect_nobody_killed():
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    kills = [line for line in log.splitlines() if re.search("out of memory|oom-kill|page allocation fail", line, re.I)]
    expect_equal(kills, [], "the kernel's complaints")


def call(server, size, *args):
    """Whether it went over RDMA; over TCP only for want of memory."""
    client = RdmaClient(server.address, "--attachment_size", size, *args)
    client.finish(timeout=30)
    result = client.result()
    print(f"        {size} bytes {' '.join(map(str, args))}: {result['transport']} {result['fallback_reason']}, "
          f"{memory('MemAvailable') >> 10} of {memory('MemTotal') >> 10} MiB available, {client.counters()['mem_regions']}"
          " regions")
    expect_equal(result["errors"], 0, "errors")
    expect_equal(client.counters()["conns_failed"], 0, "connections lost by the client")
    expect(result["transport"] == "rdma" or "memory" in result["fallback_reason"], result["fallback_reason"])


def need_small_guest():
    if not IN_GUEST or memory("MemTotal") > TOTAL_LIMIT_KIB:
        raise Skip("needs a guest of 512 MiB (LAB_MEM=512)")


@contextlib.contextmanager
def memory_left(mib):
    """The rest is filled with a file."""
    try:
        with open(FILLER, "wb", buffering=0) as file:
            while memory("MemAvailable") >> 10 > mib:
                file.write(bytes(1 << 20))
        yield
    finally:
        os.unlink(FILLER)


@test
def default_flags_fit():
    need_small_guest()
    server = RdmaServer()
    call(server, 32, "--test_iterations", 100)
    call(server, 1 << 20, "--test_iterations", 10)
    call(server, 32, "--test_iterations", 20, "--thread_num", 16, "--queue_depth", 4)
    call(server, 1 << 20, "--test_iterations", 4, "--thread_num", 8, "--queue_depth", 4)
    counters = server.stop()
    expect_equal(counters["conns_failed"], 0, "connections lost by the server")
    expect_equal(counters["conns_live"], 0, "connections left")
    expect_nobody_killed()


@test
def connections_beyond_memory_go_to_tcp():
    """Both begin with 64 MiB; there is no room for a second region, which 64 connections receive into."""
    need_small_guest()
    with memory_left(215):
        server = RdmaServer()
        client = RdmaClient(server.address, "--thread_num", 64, "--queue_depth", 2, "--attachment_size", 65536,
                            "--test_iterations", 4)
        client.finish(timeout=60)
        result = client.result()
        expect_equal(result["errors"], 0, "errors")
        expect_equal(result["calls"], 256, "calls")
        expect_equal(result["transport"], "mixed", "transport")
        counters = server.stop()
    expect_equal(counters["conns_live"], 0, "connections left")
    expect_nobody_killed()


if __name__ == "__main__":
    main()
