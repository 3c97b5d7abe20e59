#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Which processors a program runs on: what -l, --lcores and --main-lcore say, within what taskset or a cpuset allows."""

from harness import CPUS, Program, Skip, expect, expect_equal, main, test

FIRST, LAST = CPUS[0], CPUS[-1]
NO_SUCH = 100000


def ranges(numbers):
    """As the kernel writes them."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def threads_of(*options, wrapper=()):
    """{thread's name: the processors that it may run on} of a server; its main thread has the program's name."""
    command = Program("server", "--port", "default,mode=event", "--listen", "127.0.0.1:0", *options, wrapper=wrapper)
    command.wait_stdout(r"^listening on ")
    command.wait_stderr(r"sleeps when idle")
    threads = {thread.name: thread.processors for thread in command.workers()}
    command.interrupt()
    command.finish()
    return threads


def refusal(*options, wrapper=()):
    """The one line that a refused start says."""
    command = Program("server", "--listen", "127.0.0.1:0", *options, wrapper=wrapper)
    command.finish(status=2)
    lines = command.stderr.text().splitlines()
    expect_equal(len(lines), 1, f"lines ({lines})")
    return lines[0].split(" error ", 1)[1]


@test
def threads_are_named_and_pinned():
    everything = ranges(CPUS)
    expect_equal(threads_of("-l", FIRST), {"xr-perf": str(FIRST)}, "threads")
    expect_equal(threads_of("--lcores", f"7@{FIRST},(2000,3)@({everything})"),
                 {"xr-perf": everything, "lcore-7": str(FIRST), "lcore-2000": everything}, "threads")
    expect_equal(threads_of("--lcores", f" 7 @ {FIRST} , 2000 @ ( {everything} ) ", "--main-lcore", 2000),
                 {"xr-perf": everything, "lcore-7": str(FIRST)}, "threads")
    if len(CPUS) > 1:
        expect_equal(threads_of("-l", f"{FIRST},{LAST}", "--main-lcore", LAST),
                     {"xr-perf": str(LAST), f"lcore-{FIRST}": str(FIRST)}, "threads")


@test
def helpers_keep_off_the_lcores():
    left = CPUS[1:] or CPUS
    command = Program("server", "--listen", "127.0.0.1:0", "-l", FIRST, "--stall_ms", 60000)
    command.wait_stdout(r"^listening on ")
    # A sanitizer's thread goes by the program's name, as the main one does.
    helpers = {thread.name: thread.processors for thread in command.threads()
               if thread.name.startswith("xr-") and thread.name != "xr-perf"}
    expect("xr-stall" in helpers, f"no thread watches: {helpers}")
    for name, processors in helpers.items():
        expect_equal(processors, ranges(left), f"the processors of {name}")
    command.interrupt()
    command.finish()
    expect("callback" not in command.stderr.text(), "something has stalled")


@test
def without_a_list_it_is_what_the_process_may_use():
    others = {f"lcore-{cpu}": str(cpu) for cpu in CPUS[1:]}
    expect_equal(threads_of(), {"xr-perf": str(FIRST), **others}, "threads")
    expect_equal(threads_of(wrapper=("taskset", "-c", str(LAST))), {"xr-perf": str(LAST)}, "threads")


@test
def what_is_forbidden_is_refused():
    if len(CPUS) < 2:
        raise Skip("there is only one processor to allow")
    expect_equal(refusal("-l", FIRST, wrapper=("taskset", "-c", str(LAST))),
                 f"option -l: processor {FIRST} of lcore {FIRST} is not among those that this process may use; "
                 f"allowed are {LAST}", "the reason")
    expect_equal(refusal("--lcores", f"3@({FIRST},{LAST})", wrapper=("taskset", "-c", str(FIRST))),
                 f"option --lcores: processor {LAST} of lcore 3 is not among those that this process may use; "
                 f"allowed are {FIRST}", "the reason")


@test
def what_is_not_there_is_refused():
    expect_equal(refusal("-l", f"{FIRST},{NO_SUCH}"),
                 f"option -l: processor {NO_SUCH} of lcore {NO_SUCH} does not exist; allowed are {ranges(CPUS)}",
                 "the reason")
    expect_equal(refusal("-l", FIRST, "--main-lcore", 5000),
                 f"option --main-lcore: there is no lcore 5000; allowed are {FIRST}", "the reason")


@test
def lists_that_make_no_sense_are_refused():
    for options, culprit in ((("-l", "3,1-4"), "3 occurs twice"), (("-l", "4-2"), "range 4-2 runs backwards"),
                             (("-l", ""), "the list is empty"), (("-l", "0-"), "a number is missing at the end"),
                             (("--lcores", "0@()"), "() is empty"), (("--lcores", "(0"), "a ')' is missing"),
                             (("--lcores", "1@0,(0-3)@0"), "lcore 1 occurs twice")):
        reason = refusal(*options)
        expect(culprit in reason and "allowed is a list such as" in reason, f"{options}: {reason}")


if __name__ == "__main__":
    main()
