#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""mk/run-tests and mk/check: nothing that failed, died, hung or tested nothing looks green."""

import time

import suite

GREEN = "echo 'one: 3 passed, 0 failed, 1 skipped'"


class Runner(suite.Case):
    def program(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + text + "\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def run_tests(self, *arguments):
        return suite.run(suite.ROOT / "mk/run-tests", "--name", "sum", "--log-dir", self.folder / "log", *arguments)

    def judged(self, text, *options):
        """Status and last line of a run of one program with that text."""
        process = self.run_tests(*options, self.program("program", text))
        return process.returncode, process.stdout.splitlines()[-1]

    def test_counts_are_added_up(self):
        process = self.run_tests(self.program("a", GREEN), self.program("b", GREEN))
        self.assertEqual(self.expect(0, process).splitlines()[-1], "sum: 6 passed, 0 failed, 2 skipped")

    def test_failures_are_added_up_and_shown(self):
        process = self.run_tests(self.program("a", GREEN),
                                 self.program("b", "echo the reason; echo 'b: 1 passed, 2 failed, 0 skipped'; exit 1"))
        told = self.expect(1, process)
        self.assertEqual(told.splitlines()[-1], "sum: 4 passed, 2 failed, 1 skipped")
        self.assertIn("the reason", told)

    def test_trouble_is_a_failure(self):
        for what, text, counts in [
            ("prints nothing", ":", "0 passed, 1 failed"),
            ("prints no counts", "echo all is well", "0 passed, 1 failed"),
            ("ran no test", "echo 'a: 0 passed, 0 failed, 0 skipped'", "0 passed, 1 failed"),
            ("exit status at odds with the counts", GREEN + "; exit 3", "3 passed, 1 failed"),
            ("counts at odds with the exit status", "echo 'a: 3 passed, 1 failed, 0 skipped'", "3 passed, 1 failed"),
            ("dies", "kill -SEGV $$", "0 passed, 1 failed"),
            ("dies after its counts", GREEN + "; kill -ABRT $$", "3 passed, 1 failed"),
            ("words in place of counts", "echo 'a: three passed, 0 failed, 0 skipped'", "0 passed, 1 failed"),
        ]:
            with self.subTest(what):
                status, last = self.judged(text)
                self.assertEqual(status, 1)
                self.assertTrue(last.startswith("sum: " + counts), last)

    def test_nothing_to_run_is_a_failure(self):
        self.assertIn("sum: 0 passed, 1 failed", self.expect(1, self.run_tests()))

    def test_a_program_that_is_not_there_is_a_failure(self):
        self.assertIn("sum: 0 passed, 1 failed", self.expect(1, self.run_tests(self.folder / "nothing")))

    def test_a_hang_is_ended_with_all_it_started(self):
        start = time.monotonic()
        status, last = self.judged("sleep 1000 & echo $! >%s/child; wait" % self.folder, "--timeout", "0.5")
        self.assertEqual((status, last), (1, "sum: 0 passed, 1 failed, 0 skipped"))
        self.assertLess(time.monotonic() - start, 60)
        self.assert_gone((self.folder / "child").read_text(encoding="utf-8").strip())

    def test_what_a_program_leaves_behind_is_ended(self):
        status, _ = self.judged("sleep 1000 >/dev/null 2>&1 & echo $! >%s/child; %s" % (self.folder, GREEN))
        self.assertEqual(status, 0)
        self.assert_gone((self.folder / "child").read_text(encoding="utf-8").strip())

    def assert_gone(self, pid):
        for _ in range(100):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                    state = stat.read().rpartition(")")[2].split()[0]
            except FileNotFoundError:
                return
            if state == "Z":
                return
            time.sleep(0.05)
        self.fail(f"process {pid} is still there, in state {state}")

    def test_plain_commands_are_judged_by_their_status(self):
        process = self.run_tests("--plain", "true", "false", "true")
        self.assertEqual(self.expect(1, process).splitlines()[-1], "sum: 2 passed, 1 failed, 0 skipped")

    def test_repeat_runs_again(self):
        self.assertEqual(self.judged(GREEN, "--repeat", "3"), (0, "sum: 9 passed, 0 failed, 3 skipped"))

    def test_skips_are_told(self):
        process = self.run_tests(self.program("a", "echo 'skipped: no such device'; " + GREEN))
        self.assertIn("skipped: no such device", self.expect(0, process))

    def check(self, *cases):
        """mk/check over parts whose make is a script that knows only them."""
        targets = "".join(f"check-{name}) {text} ;;\n" for name, text in cases)
        make = self.program("make", f"case $2 in\n{targets}esac")
        process = suite.run(suite.ROOT / "mk/check", make, *(name for name, _ in cases))
        return process.returncode, process.stdout.splitlines()

    def test_check_tells_seconds_and_counts_of_each_part(self):
        status, lines = self.check(("a", GREEN), ("b", GREEN))
        self.assertEqual((status, lines[-1]), (0, "6 passed, 0 failed, 2 skipped"))
        self.assertEqual(lines[-5].split(), ["part", "seconds", "passed", "failed", "skipped"])
        self.assertRegex(lines[-3], r"^b +\d+\.\d +3 +0 +1$")

    def test_check_goes_on_after_a_failure(self):
        red = "echo 'a: 1 passed, 1 failed, 0 skipped'; echo 'make: Error'; exit 2"
        status, lines = self.check(("a", red), ("b", GREEN))
        self.assertEqual((status, lines[-1]), (1, "4 passed, 1 failed, 1 skipped"))

    def test_check_lets_no_part_be_green_for_nothing(self):
        for text in ":", "exit 2", "echo 'a: 0 passed, 0 failed, 0 skipped'", GREEN + "; exit 2":
            with self.subTest(text):
                status, lines = self.check(("a", text))
                self.assertEqual(status, 1)
                self.assertRegex(lines[-1], r"^[03] passed, 1 failed, [01] skipped$")


if __name__ == "__main__":
    suite.main("runner")
