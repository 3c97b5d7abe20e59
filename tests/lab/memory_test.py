#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Registered memory over RDMA: regions of huge pages, and refusals where the machine has not what was asked for."""

from lab import BLOCKS, ADDRESS, RdmaClient, RdmaServer, bind
from pages import cpus_of_nodes, free_pages, memory_from, reserved, two_nodes
from harness import MODES, Program, expect, expect_equal, main, test

# For both processes' pools of every type, each with room to grow.
ENOUGH = 256

MIB = 1 << 20


def expect_refusal(cpu, *args, says, wrapper=()):
    """An xr-perf that ends at once with a single line."""
    program = Program("server", "-l", cpu, "--listen", bind(ADDRESS), *args, wrapper=wrapper).finish(status=2)
    lines = program.stderr.text().splitlines()
    expect_equal(len(lines), 1, f"number of lines in {lines}")
    expect(says in lines[0], f"\"{says}\" is not in \"{lines[0]}\"")


@test
def regions_of_huge_pages_serve_every_block_type():
    with reserved({node: ENOUGH for node in cpus_of_nodes()}):
        for mode, block in zip(MODES, BLOCKS):
            before = sum(free_pages(node) for node in cpus_of_nodes())
            server = RdmaServer("--require-hugepages", mode=mode, block=block)
            client = RdmaClient(server.address, "--require-hugepages", "--attachment_size", 100000, "--queue_depth", 4,
                                "--test_iterations", 50, mode=mode, block=block)
            client.wait_stdout("calls")
            client.finish_clean()
            taken = before - sum(free_pages(node) for node in cpus_of_nodes())
            counters = server.stop_clean()
            for program, figures in ("client", client.counters()), ("server", counters):
                expect(figures["mem_regions"] > 0, f"the {program} has no regions")
                for step in ("1g", "2m", "transparent", "node", "unbound"):
                    expect_equal(figures[f"mem_steps_down_{step}"], 0, f"the {program}'s mem_steps_down_{step}")
            expect_equal(taken * 2 * MIB, counters["mem_region_bytes"], "bytes of huge pages that the server had")


@test
def huge_pages_that_are_required_and_missing_are_an_error():
    with reserved({node: 0 for node in cpus_of_nodes()}):
        for cpu in cpus_of_nodes().values():
            expect_refusal(cpu, "--require-hugepages", says="--require-hugepages: no huge pages for 64 MiB on node ")


@test
def huge_pages_of_the_other_node_are_an_error_for_a_strict_one():
    (near, cpu), (far, _) = two_nodes()
    with reserved({near: 0, far: ENOUGH}):
        expect_refusal(cpu, "--require-hugepages", "--strict-numa",
                       says=f"--strict-numa: node {near} can't give 64 MiB of huge pages: ")


@test
def memory_of_the_other_node_is_an_error_for_a_strict_one():
    (near, cpu), (far, _) = two_nodes()
    with memory_from(far) as wrapper:
        expect_refusal(cpu, "--strict-numa", wrapper=wrapper,
                       says=f"--strict-numa: node {near} can't give 64 MiB: ")


@test
def memory_of_the_other_node_is_taken_where_it_may_be():
    (near, cpu), (far, _) = two_nodes()
    with memory_from(far) as wrapper:
        server = RdmaServer(cpu=cpu, wrapper=wrapper)
        RdmaClient(server.address, "--attachment_size", 100000, "--test_iterations", 20).finish_clean()
        counters = server.stop_clean()
        expect_equal(counters["mem_steps_down_node"], counters["mem_regions"], "regions elsewhere")
        lines = [line for line in server.stderr.text().splitlines() if "on another node" in line]
        expect_equal(len(lines), 1, f"number of lines in {lines}")
        expect(f"node {near} gets" in lines[0], lines[0])


if __name__ == "__main__":
    main()
