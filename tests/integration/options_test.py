#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a user mistypes is told in one line, and nothing is begun."""

import os
import re

from harness import CPUS, Program, Server, expect, expect_equal, main, test

NO_SUCH_CPU = max(os.cpu_count() or 1, CPUS[-1] + 1) + 1000


def expect_usage_error(args, *words):
    program = Program(*args)
    program.finish(status=2)
    expect_equal(program.stdout.text(), "", "stdout")
    # What the library tells of itself once it has started is no part of the complaint.
    lines = [line for line in program.stderr.text().splitlines() if " notice " not in line]
    expect_equal(len(lines), 1, f"lines on stderr for {args}: {lines}")
    for word in words:
        expect(word in lines[0], f"\"{word}\" is not in \"{lines[0]}\"")


def expect_help(args, *words):
    program = Program(*args)
    program.finish()
    expect_equal(program.stderr.text(), "", "stderr")
    for word in words:
        expect(word in program.stdout.text(), f"\"{word}\" is not in the help:\n{program.stdout.text()}")


@test
def a_list_of_lcores_must_make_sense():
    expect_usage_error(["server", "-l", "1-3-5"], "-l", "1-3-5")
    expect_usage_error(["client", "-l", "x"], "-l", "x")
    expect_usage_error(["client", "-l", ""], "-l")


@test
def an_lcore_must_exist():
    expect_usage_error(["server", "-l", NO_SUCH_CPU], str(NO_SUCH_CPU))
    expect_usage_error(["server", "-l", CPUS[0], "--main-lcore", NO_SUCH_CPU], str(NO_SUCH_CPU))


@test
def unknown_options_are_named():
    expect_usage_error(["server", "--no-such-option"], "no-such-option")
    expect_usage_error(["client", "--queue_dept=3"], "queue_dept")


@test
def values_must_be_allowed():
    expect_usage_error(["server", "--port", "default,mode=fast"], "mode", "poll", "event", "adaptive")
    expect_usage_error(["client", "--queue_depth", "0"], "queue_depth", "1")
    expect_usage_error(["client", "--queue_depth", "many"], "queue_depth", "many")
    expect_usage_error(["client", "--attachment_size=-1"], "attachment_size")
    expect_usage_error(["client", "--use_rdma=perhaps"], "use_rdma", "perhaps")
    expect_usage_error(["client", "--servers", "127.0.0.1:8002+"], "servers")
    expect_usage_error(["client", "--burst_calls", 5, "--expected_qps", 9], "burst_calls", "expected_qps")


@test
def addresses_must_make_sense():
    for address in ("nonsense", "127.0.0.1", "127.0.0.1:99999", "1.2.3:4"):
        expect_usage_error(["client", "--servers", address], address, "127.0.0.1:8002")
        expect_usage_error(["server", "--listen", address], address, "127.0.0.1:8002")


@test
def arguments_that_are_no_options_are_refused():
    expect_usage_error(["server", "surplus"], "surplus")
    expect_usage_error([], "server", "client")
    expect_usage_error(["serve"], "server", "client")


@test
def help_is_no_error():
    expect_help(["--help"], "server", "client")
    expect_help(["server", "--help"], "listen", "lcores", "port")
    expect_help(["client", "--help"], "queue_depth", "attachment_size", "expected_qps", "lcores")


@test
def the_version_is_told():
    program = Program("--version")
    program.finish()
    expect(re.fullmatch(r"xr-perf \d+\.\d+\.\d+\n", program.stdout.text()), program.stdout.text())


@test
def a_taken_port_is_an_error_but_no_wrong_option():
    server = Server()
    second = Program("server", "--listen", server.address)
    second.finish(status=1)
    expect(server.address in second.stderr.text(), "the address is not named")


@test
def names_may_be_written_in_gflags_manner():
    server = Server()
    for spelling in (["--queue_depth=2", "-thread_num=2"], ["--queue-depth", "2", "--thread-num", "2"]):
        client = Program("client", "--servers", server.address, "--test_iterations", 3, *spelling)
        client.finish()
        expect("6 calls" in client.stdout.text() or "calls       6 " in client.stdout.text(), client.stdout.text())


if __name__ == "__main__":
    main()
