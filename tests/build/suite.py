# SPDX-License-Identifier: Apache-2.0
"""What the tests of the build share: running commands, copies of the tree, and the closing line."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("XR_BUILD", ROOT / "build")).resolve()
TOP_LEVEL = ["core", "poll", "mem", "net", "apps", "tests", "mk", "GNUmakefile", ".clang-tidy", ".clang-format"]


def run(*argv, cwd=ROOT, env=None, timeout=300, stdin=subprocess.DEVNULL):
    """The finished process, with what it printed on both streams as one text in .stdout."""
    return subprocess.run([str(word) for word in argv], cwd=cwd, env=env, timeout=timeout, stdin=stdin, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


class Case(unittest.TestCase):
    """A test with a folder of its own that is gone afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="xrdma-")))

    def expect(self, status, process):
        self.assertEqual(process.returncode, status, f"{process.args}\n{process.stdout}")
        return process.stdout


def plain_environment():
    """Without what a make above us hands down (O, CC, SAN, job slots, ...): a copy of the tree is built on its own."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}


def copy_tree(to, names=TOP_LEVEL):
    """The sources, or some of them, as they are now."""
    to.mkdir()
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, to / name)
    return to


def main(name):
    result = unittest.main(exit=False, verbosity=2).result
    failed = len({test.id() for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    for test, why in result.skipped:
        print(f"skipped: {test}: {why}")
    sys.stderr.flush()
    print(f"{name}: {result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed else 0)
