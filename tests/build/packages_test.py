#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""mk/packages on machines that this is not: stand-ins for dpkg-query, apt-get, id and sudo stand first in PATH."""

import os
import pathlib
import re
import shutil
import unittest

import suite

TOOLS = ["sh", "env", "true", "tr", "grep", "mktemp", "cat", "rm", "make", "nproc", "find", "sort", "mkdir"]

DPKG_QUERY = 'for name; do :; done; case " $ABSENT " in *" $name "*) exit 1 ;; esac; printf installed'
APT_GET = 'echo "apt-get $*" >>"$CALLS"; case "$*" in *install*) exit ${APT_STATUS:-0} ;; esac'


ON_DEBIAN = re.search(r'^ID="?debian"?$', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
on_debian = unittest.skipUnless(ON_DEBIAN, "apt-get is only used on Debian")


class Packages(suite.Case):
    def machine(self, uid=0, **stand_ins):
        """An environment whose PATH holds a few plain tools, and these scripts."""
        path = self.folder / "bin"
        path.mkdir()
        for tool in TOOLS:
            (path / tool).symlink_to(shutil.which(tool))
        for name, text in {"id": f"echo {uid}", **stand_ins}.items():
            script = path / name.replace("_", "-")
            script.write_text(f"#!{shutil.which('sh')}\n{text}\n", encoding="utf-8")
            script.chmod(0o755)
        calls = self.folder / "calls"
        calls.touch()
        return {"PATH": str(path), "CALLS": str(calls), "ABSENT": "spin codespell"}

    def packages(self, env, *purposes):
        return suite.run(suite.ROOT / "mk/packages", *purposes, env=env)

    def calls(self):
        return (self.folder / "calls").read_text(encoding="utf-8").splitlines()

    def test_each_package_is_named_once(self):
        names = self.expect(0, suite.run(suite.ROOT / "mk/packages", "--list", "build", "check", "lint")).split()
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("liburcu-dev", names)

    def test_nothing_missing_calls_nothing(self):
        env = self.machine(dpkg_query=DPKG_QUERY, apt_get=APT_GET)
        env["ABSENT"] = ""
        self.assertEqual(self.expect(0, self.packages(env, "build", "check", "lint")), "")
        self.assertEqual(self.calls(), [])

    @on_debian
    def test_root_installs_only_what_is_missing(self):
        env = self.machine(dpkg_query=DPKG_QUERY, apt_get=APT_GET)
        self.assertIn("Installing: spin\n", self.expect(0, self.packages(env, "build", "check")))
        update, install = self.calls()
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(install.endswith(" install -y --no-install-recommends spin"), install)

    @on_debian
    def test_failed_install_stops_and_names_it(self):
        env = self.machine(dpkg_query=DPKG_QUERY, apt_get=APT_GET)
        env["APT_STATUS"] = "100"
        self.assertIn("could not install:\n\n    codespell\n", self.expect(1, self.packages(env, "lint")))

    @on_debian
    def test_a_user_goes_through_sudo_and_is_told_why(self):
        env = self.machine(uid=1000, dpkg_query=DPKG_QUERY, apt_get=APT_GET,
                           sudo='echo "sudo $*" >>"$CALLS"; [ "$1" != -n ] || shift; exec "$@"')
        told = self.expect(0, self.packages(env, "check"))
        self.assertIn("needs sudo", told)
        self.assertIn("spin", told)
        self.assertIn("sudo -n true", self.calls())
        self.assertEqual(sum(line.startswith("apt-get") for line in self.calls()), 2)

    @on_debian
    def test_a_user_without_sudo_is_told_what_to_run(self):
        for sudo in ({}, {"sudo": "exit 1"}):
            with self.subTest(sudo):
                env = self.machine(uid=1000, dpkg_query=DPKG_QUERY, apt_get=APT_GET, **sudo)
                told = self.expect(1, self.packages(env, "check"))
                self.assertIn("apt-get install --no-install-recommends spin", told)
                self.assertEqual(self.calls(), [])
                shutil.rmtree(self.folder / "bin")

    def test_another_distribution_is_told_the_names(self):
        env = self.machine()
        told = self.expect(1, self.packages(env, "build"))
        self.assertIn("This is not Debian", told)
        self.assertIn("gcc libc6-dev", told)
        env["XR_PACKAGES"] = "no"
        self.assertEqual(self.expect(0, self.packages(env, "build")), "")

    def test_unknown_purpose_is_refused(self):
        told = self.expect(2, self.packages(self.machine(), "biuld"))
        self.assertIn("no purpose 'biuld'; there are: build check lint", told)
        self.assertIn("usage", self.expect(2, self.packages({**os.environ})))

    def make(self, env, *arguments):
        return suite.run("make", f"O={self.folder}/out", *arguments, env=env)

    def test_a_bare_machine_can_ask_for_help(self):
        self.assertIn("make demo", self.expect(0, self.make(self.machine(), "help")))

    @on_debian
    def test_a_bare_machine_installs_before_it_builds(self):
        env = self.machine(dpkg_query="exit 1", apt_get=APT_GET)
        env["APT_STATUS"] = "100"
        for goal in "demo", "check", "check-unit", "lint":
            with self.subTest(goal):
                self.assertIn("apt-get could not install", self.expect(2, self.make(env, goal)))

    def test_a_plain_make_on_a_bare_machine_says_what_to_do(self):
        self.assertIn("make packages", self.expect(2, self.make(self.machine())))


if __name__ == "__main__":
    suite.main("packages")
