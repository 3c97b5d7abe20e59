#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The examples of a guide in doc/ are one program: it compiles against the installed library and prints what it says."""

import os
import re

import suite

WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
GUIDES = ["iobuf"]


class Guide(suite.Case):
    def setUp(self):
        super().setUp()
        prefix = self.folder / "usr"
        self.expect(0, suite.run("make", f"O={suite.BUILD}", f"PREFIX={prefix}", "DESTDIR=", "install"))
        self.env = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}

    def blocks(self, name, language):
        text = (suite.ROOT / "doc" / f"{name}.md").read_text(encoding="utf-8")
        return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    def compile(self, name):
        source, program = self.folder / f"{name}.c", self.folder / name
        source.write_text("\n".join(self.blocks(name, "c")), encoding="utf-8")
        flags = self.expect(0, suite.run("pkg-config", "--cflags", "--libs", "xrdma-reactor", env=self.env)).split()
        self.assertEqual(self.expect(0, suite.run("cc", *WARNINGS, source, "-o", program, *flags)), "")
        return program

    def test_each_prints_what_it_says(self):
        for name in GUIDES:
            with self.subTest(name):
                told = self.expect(0, suite.run(self.compile(name), "-l", min(os.sched_getaffinity(0)),
                                                "--log-level", "error", env=self.env))
                self.assertEqual([told], self.blocks(name, "text"))


if __name__ == "__main__":
    suite.main("guide")
