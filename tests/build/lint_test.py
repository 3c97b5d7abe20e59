#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Every linter finds what is planted for it, in a tree that holds little else: none of them is green by being off."""

import suite

CLEAN = """/* SPDX-License-Identifier: Apache-2.0 */

int clean(int n);

int
clean(int n)
{
	return n + 1;
}
"""

# In two pieces, or it would be found here.
TYPO = "t" + "eh"

LEAK = """
#include <stdlib.h>

int leak(int n);

int
leak(int n)
{
	char *text = calloc(1, (size_t)n);

	return text ? text[0] : 0;
}
"""

OVERRUN = """
int overrun(void);

int
overrun(void)
{
	int cells[4] = {0};

	return cells[4];
}
"""


class Lint(suite.Case):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        suite.copy_tree(self.tree, ["mk", "GNUmakefile", ".clang-tidy", ".clang-format"])
        for folder in "core/xrdma", "poll", "mem", "net", "apps", "tests", "doc", ".ci":
            (self.tree / folder).mkdir(parents=True)
        self.plant("tests/.clang-tidy", (suite.ROOT / "tests/.clang-tidy").read_text(encoding="utf-8"))
        self.plant("core/clean.c", CLEAN)

    def plant(self, name, text):
        (self.tree / name).write_text(text, encoding="utf-8")

    def lint(self, linter):
        return suite.run("make", linter, cwd=self.tree, env=suite.plain_environment())

    def finds(self, linter, words):
        process = self.lint(linter)
        self.assertIn(words, self.expect(2, process))

    def test_a_clean_tree_passes(self):
        for linter in "lint-tidy", "lint-cppcheck", "lint-codespell", "lint-shellcheck", "lint-floors", "run-format":
            with self.subTest(linter):
                self.expect(0, self.lint(linter))

    def test_clang_tidy(self):
        self.plant("core/leak.c", LEAK)
        self.finds("lint-tidy", "clang-analyzer-unix.Malloc")

    def test_clang_tidy_looks_into_headers(self):
        self.plant("core/a.h", "static inline int\nodd(int n)\n{\n\treturn n == 1 || n == 1;\n}\n")
        self.plant("core/a.c", '#include "core/a.h"\n' + CLEAN)
        self.finds("lint-tidy", "core/a.h:4")

    def test_clang_tidy_looks_again_when_a_header_changed(self):
        self.plant("core/a.h", "")
        self.plant("core/a.c", '#include "core/a.h"\n' + CLEAN)
        self.expect(0, self.lint("lint-tidy"))
        self.plant("core/a.h", "static inline int\nodd(int n)\n{\n\treturn n == 1 || n == 1;\n}\n")
        self.finds("lint-tidy", "core/a.h:4")

    def test_cppcheck(self):
        self.plant("core/overrun.c", OVERRUN)
        self.finds("lint-cppcheck", "arrayIndexOutOfBounds")

    def test_codespell(self):
        self.plant("doc/a.md", "This is " + TYPO + " documentation.\n")
        self.finds("lint-codespell", TYPO + " ==> the")

    def test_shellcheck(self):
        self.plant("tests/run", '#!/bin/sh\nrm -rf $1/x\n')
        self.finds("lint-shellcheck", "SC2086")

    def test_floors(self):
        self.plant("core/a.c", '#include "net/net.h"\n')
        self.finds("lint-floors", "core/a.c:1: includes net/net.h")

    def test_format(self):
        self.plant("core/a.c", "int  a;\n")
        self.finds("run-format", "code should be clang-formatted")


if __name__ == "__main__":
    suite.main("lint")
