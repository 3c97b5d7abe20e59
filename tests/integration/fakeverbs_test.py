#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The whole library over RDMA on any machine: one_process_test once more, with fakeverbs loaded as libibverbs.

fakeverbs ends a process in which a rule was broken with a status of its own, which the test sees, and tells what it
has counted.
"""

import json
import os
import subprocess
import tempfile

from harness import BUILD, SLACK, Skip, expect, expect_equal, main, test

FAKE = os.path.join(BUILD, "tests", "fakeverbs")
PROGRAM = os.path.join(BUILD, "tests", "integration", "one_process_test")

ACK_SLOTS = 3


def run(path):
    """The program's output, and the counts of each of its processes."""
    env = dict(os.environ, LD_LIBRARY_PATH=FAKE, FAKEVERBS_COUNTS=path, XR_CLIENT_PORT=",rdma=require")
    done = subprocess.run(
        [PROGRAM], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50 * SLACK, check=False
    )
    expect(done.returncode == 0, f"the program ended with {done.returncode} and said:\n{done.stdout}")
    with open(path, encoding="utf-8") as lines:
        return done.stdout, [json.loads(line) for line in lines]


def expect_books_balance(counts):
    # A connection's last pure ACKs may find their peer gone.
    lost = counts["sends"] - counts["delivered"]
    expect(0 <= lost <= 2 * ACK_SLOTS, f"{lost} messages did not arrive")
    expect_equal(counts["rnr"], 0, "messages without a receive")
    expect_equal(counts["send_refused"], 0, "sends for which there was no room")
    expect_equal(counts["events_acked"], counts["events_got"], "events acknowledged")
    # Not all credits need to have been reported when the connection ends, but none is made up.
    data = counts["sends"] - counts["zero_length"]
    expect(counts["credits"] <= data, f"{counts['credits']} credits for {data} messages")


@test
def calls_and_streams_over_rdma():
    if not os.path.exists(os.path.join(FAKE, "libibverbs.so.1")):
        raise Skip("built without RDMA")
    with tempfile.TemporaryDirectory() as folder:
        output, processes = run(os.path.join(folder, "counts"))
    expect("fakeverbs:" not in output, "something was violated or left")
    busy = [counts for counts in processes if counts["sends"]]
    expect(len(busy) >= 6, f"{len(busy)} processes with RDMA")
    for counts in busy:
        expect_books_balance(counts)


if __name__ == "__main__":
    main()
