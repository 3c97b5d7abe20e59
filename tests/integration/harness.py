# SPDX-License-Identifier: Apache-2.0
"""What the integration tests stand on: programs of the build, started, watched and ended; tests, run and counted.

A test is a function marked with @test; the module ends with main(). Whatever a test has started is killed when it ends.
XR_BUILD names the build folder, XR_SAN the sanitizers that it was built with.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("XR_BUILD") or os.path.join(ROOT, "build")
SANITIZED = bool(os.environ.get("XR_SAN"))
THREAD_SANITIZED = "thread" in os.environ.get("XR_SAN", "")

# Time limits below are for a bare build on an idle machine.
SLACK = 5 if SANITIZED else 2

INTERRUPT_AGAIN_S = 5

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, CLIENT_CPU = CPUS[0], CPUS[-1]

MODES = ("poll", "event", "adaptive")


class Failure(Exception):
    """A test's expectation that does not hold."""


class Skip(Exception):
    """A test that can't run here, with the reason."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def expect_equal(actual, expected, what):
    expect(actual == expected, f"{what} is {actual!r}, expected {expected!r}")


def wait_until(condition, what, timeout=10):
    """Waits for a condition to become true and returns its value."""
    deadline = time.monotonic() + timeout * SLACK
    while True:
        value = condition()
        if value:
            return value
        expect(time.monotonic() < deadline, f"{what}: not within {timeout * SLACK} s")
        time.sleep(0.02)


# ---- programs ----


class Stream:
    """A program's output, read by a thread so that it never blocks."""

    def __init__(self, file):
        self._lines = []
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, args=(file,), daemon=True)
        self._thread.start()

    def _read(self, file):
        for line in file:
            with self._changed:
                self._lines.append(line.decode(errors="replace"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        file.close()

    def wait_for(self, pattern, timeout):
        """The first match of a regular expression in a line; None when the output or the time ends without one."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    match = re.search(pattern, line)
                    if match:
                        return match
                seen = len(self._lines)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    return None
                self._changed.wait(left)

    def text(self):
        self._thread.join(5)
        return self.so_far()

    def so_far(self):
        with self._changed:
            return "".join(self._lines)


class Program:
    """A running program of the build; a wrapper is a command that runs it, such as valgrind."""

    running = []

    def __init__(self, *args, name="xr-perf", folder="bin", wrapper=()):
        self.command = [*wrapper, os.path.join(BUILD, folder, name), *map(str, args)]
        self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
        self.pid = self._process.pid
        self.rusage = None
        self._status = None
        self._interrupts, self._interrupted_at = 0, 0
        self.stdout, self.stderr = Stream(self._process.stdout), Stream(self._process.stderr)
        Program.running.append(self)

    def fail(self, message):
        raise Failure(f"{' '.join(self.command)}: {message}\n--- stdout\n{self.stdout.so_far()}"
                      f"--- stderr\n{self.stderr.so_far()}")

    def poll(self):
        """The exit status, negative for a signal; None while it runs."""
        if self._status is None:
            pid, status, rusage = os.wait4(self.pid, os.WNOHANG)
            if pid == self.pid:
                self._status, self.rusage = os.waitstatus_to_exitcode(status), rusage
                self._process.returncode = self._status
        return self._status

    def wait(self, timeout=10):
        deadline = time.monotonic() + timeout * SLACK
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.fail(f"still running after {timeout * SLACK} s")
            self.repeat_lost_interrupt()
            time.sleep(0.005)
        return self._status

    def repeat_lost_interrupt(self):
        """GCC 12's thread sanitizer now and then drops a signal that comes while the program is between two of the
        calls that it intercepts: a program of twenty lines shows it, and the handler has never run. Without that
        sanitizer an interrupt is sent once, so that one lost by the library is a failure. A program that says that it
        is stopping has had its first one; one more would be the second."""
        if not THREAD_SANITIZED or not self._interrupts or time.monotonic() < self._interrupted_at + INTERRUPT_AGAIN_S:
            return
        if self._interrupts > 1 or "stopping: waiting" not in self.stderr.so_far():
            self._send_interrupt()

    def finish(self, status=0, timeout=10):
        """Waits for the end and checks the exit status."""
        if self.wait(timeout) != status:
            self.fail(f"exit status {self._status}, expected {status}")
        return self

    def wait_stdout(self, pattern, timeout=10):
        return self.stdout.wait_for(pattern, timeout * SLACK) or self.fail(f"no \"{pattern}\" on stdout")

    def wait_stderr(self, pattern, timeout=10):
        return self.stderr.wait_for(pattern, timeout * SLACK) or self.fail(f"no \"{pattern}\" on stderr")

    def signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def interrupt(self):
        """As a user does, once or a second time."""
        self._interrupts += 1
        self._send_interrupt()

    def _send_interrupt(self):
        self._interrupted_at = time.monotonic()
        # A second one may come as SIGTERM just as well.
        self.signal(signal.SIGINT if self._interrupts == 1 else signal.SIGTERM)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait()

    def expect_alive(self):
        if self.poll() is not None:
            self.fail(f"ended with status {self._status}")

    def cpu_seconds(self):
        """CPU time so far, to the nanosecond, summed over its threads."""
        return sum(thread.ran_ns() for thread in self.threads()) / 1e9

    def switches(self):
        """How often its threads have given up a processor of their own will, each sleep being one."""
        return sum(thread.switches() for thread in self.threads())

    def threads(self):
        return [Thread(f"/proc/{self.pid}/task/{task}") for task in os.listdir(f"/proc/{self.pid}/task")]

    def workers(self):
        """Those of its lcores, the main thread among them: neither helpers nor a sanitizer's."""
        return [thread for thread in self.threads() if thread.name.startswith("lcore-") or thread.number == self.pid]


class Thread:
    """One of a program's, as the kernel knows it."""

    def __init__(self, folder):
        self._folder = folder
        self.number = int(os.path.basename(folder))
        self.name = self._read("comm").strip()
        self.processors = self._status("Cpus_allowed_list")

    def ran_ns(self):
        return int(self._read("schedstat").split()[0])

    def scheduled_ns(self):
        """The time that it ran, and that it waited for a processor to run on."""
        return sum(map(int, self._read("schedstat").split()[:2]))

    def switches(self):
        return int(self._status("voluntary_ctxt_switches"))

    def _status(self, name):
        return re.search(rf"^{name}:\s*(\S+)", self._read("status"), re.M).group(1)

    def _read(self, file):
        with open(os.path.join(self._folder, file), encoding="ascii") as text:
            return text.read()


class Server(Program):
    """An xr-perf server on a port that the system chose, ready to be called."""

    def __init__(self, *args, mode="adaptive", cpu=SERVER_CPU, listen="127.0.0.1:0", wrapper=()):
        self.counters_file, self.json_file = scratch("counters"), scratch("json")
        super().__init__("server", "-l", cpu, "--port", f"default,mode={mode}", "--listen", listen,
                         "--counters", self.counters_file, "--json", self.json_file, *args, wrapper=wrapper)
        self.address = self.wait_stdout(r"^listening on (\S+)$").group(1)
        self.port = int(self.address.rsplit(":", 1)[1])

    def connect(self):
        """A raw connection to it."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10 * SLACK)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def stop(self):
        """Ends it as a user does; its counters are there afterwards."""
        self.interrupt()
        self.finish()
        return self.counters()

    def counters(self):
        return read_json(self.counters_file)

    def result(self):
        return read_json(self.json_file)


class Client(Program):
    """An xr-perf client."""

    def __init__(self, address, *args, mode="adaptive", cpu=CLIENT_CPU, wrapper=()):
        self.json_file, self.counters_file = scratch("json"), scratch("counters")
        super().__init__("client", "-l", cpu, "--port", f"default,mode={mode}", "--servers", address,
                         "--json", self.json_file, "--counters", self.counters_file, *args, wrapper=wrapper)

    def result(self):
        return read_json(self.json_file)

    def counters(self):
        return read_json(self.counters_file)


# ---- files ----

_scratch = tempfile.TemporaryDirectory(prefix="xr-test-")
_scratch_count = 0


def scratch(name):
    """The path of a file that is not there yet and goes when the tests end."""
    global _scratch_count
    _scratch_count += 1
    return os.path.join(_scratch.name, f"{_scratch_count}-{name}")


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def vector(name):
    """A captured message."""
    with open(os.path.join(ROOT, "tests", "vectors", name + ".hex"), encoding="ascii") as file:
        return bytes.fromhex(file.read().strip())


# ---- raw connections ----


def receive(connection, size):
    """Exactly this many bytes."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        expect(part, f"closed after {len(data)} of {size} bytes: {data.hex()}")
        data += part
    return data


def expect_closed(connection, within):
    """The peer closes, sending nothing more, within so many seconds."""
    connection.settimeout(within * SLACK)
    try:
        data = connection.recv(4096)
    except ConnectionResetError:
        data = b""
    except socket.timeout as error:
        raise Failure(f"still open after {within * SLACK} s") from error
    expect_equal(data, b"", "what came instead of the end")


# ---- tests ----

_tests = []


def test(function):
    _tests.append(function)
    return function


def _end_programs():
    for program in Program.running:
        program.kill()
    Program.running.clear()


def _run(function):
    """"passed", "failed" or "skipped"."""
    name = function.__name__.replace("_", " ")
    begin = time.monotonic()
    try:
        function()
        outcome, detail = "passed", ""
    except Skip as why:
        outcome, detail = "skipped", str(why)
    except Failure as what:
        outcome, detail = "failed", str(what)
    except Exception:  # whatever a test ran into is that test's failure
        outcome, detail = "failed", traceback.format_exc()
    finally:
        _end_programs()
    print(f"{outcome:7} {name} ({time.monotonic() - begin:.1f} s)" + (f": {detail}" if detail else ""), flush=True)
    return outcome


def main():
    """Runs the tests; with arguments only those with one of the words in their name."""
    # What mk/run-tests sends to a program that takes too long must not leave servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    words = sys.argv[1:]
    chosen = [t for t in _tests if not words or any(word in t.__name__ for word in words)]
    if not os.path.isdir(os.path.join(BUILD, "bin")):
        sys.exit(f"{BUILD} holds no programs: build them first, or say in XR_BUILD where they are")
    outcomes = [_run(function) for function in chosen]
    suite = os.path.basename(sys.argv[0]).removesuffix("_test.py")
    print(f"{suite}: " + ", ".join(f"{outcomes.count(o)} {o}" for o in ("passed", "failed", "skipped")))
    sys.exit(1 if "failed" in outcomes else 0)
