#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What is built again after a change, and what is not: in a copy of the tree."""

import pathlib
import re
import tempfile

import suite

FAST = "CFLAGS=-O0 -g0"


class Rebuild(suite.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="xrdma-"))
        cls.tree = suite.copy_tree(pathlib.Path(folder) / "tree")
        first = cls.make("-j2", "library")
        if first.returncode != 0:
            raise AssertionError(first.stdout)

    @classmethod
    def make(cls, *arguments, flags=FAST):
        return suite.run("make", flags, *arguments, cwd=cls.tree, env=suite.plain_environment())

    def built(self, **options):
        """What a make compiles, links and generates."""
        told = self.expect(0, self.make("-j2", "library", **options))
        return {" ".join(words) for words in re.findall(r"^  ([A-Z]+) +(\S+)$", told, re.MULTILINE)}

    def change(self, name, text="\n"):
        with open(self.tree / name, "a", encoding="utf-8") as file:
            file.write(text)

    def test_nothing_after_nothing(self):
        self.assertEqual(self.built(), set())

    def test_one_source_file(self):
        self.change("core/error.c")
        self.assertEqual(self.built(), {"CC obj/core/error.o", "LD libxrdma-reactor.so.0", "AR libxrdma-reactor.a"})

    def test_a_private_header_rebuilds_those_who_include_it(self):
        self.change("mem/block.h")
        built = self.built()
        self.assertIn("CC obj/mem/block.o", built)
        self.assertNotIn("CC obj/core/error.o", built)

    def test_a_public_header_is_staged_anew(self):
        self.change("core/xrdma/error.h", "/* changed */\n")
        self.assertIn("CC obj/core/error.o", self.built())
        self.assertIn("/* changed */", (self.tree / "build/include/xrdma/error.h").read_text(encoding="utf-8"))

    def test_a_message_is_generated_anew(self):
        proto = next(self.tree.glob("net/rpc/*.proto")).relative_to(self.tree)
        self.change(proto)
        built = self.built()
        self.assertIn(f"PROTOC {proto}", built)
        self.assertIn(f"CC obj/gen/{proto.with_suffix('')}.pb-c.o", built)
        header = f"{proto.with_suffix('')}.pb-c.h"
        notes = (self.tree / "build/obj/net").rglob("*.d")
        users = [path for path in notes if header in path.read_text(encoding="utf-8")]
        self.assertNotEqual(users, [])
        for user in users:
            self.assertIn(f"CC {user.relative_to(self.tree / 'build').with_suffix('.o')}", built)

    def test_a_changed_flag_rebuilds_and_rebuilds_back(self):
        objects = {path.relative_to(self.tree / "build").as_posix() for path in (self.tree / "build/obj").rglob("*.o")}
        for flags in FAST + " -DOTHER", FAST:
            built = self.built(flags=flags)
            self.assertEqual({name[3:] for name in built if name.startswith("CC ")}, objects)

    def test_a_source_that_comes_and_goes(self):
        source = self.tree / "core/extra.c"
        source.write_text("int extra(void);\nint extra(void) { return 0; }\n", encoding="utf-8")
        links = {"LD libxrdma-reactor.so.0", "AR libxrdma-reactor.a"}
        self.assertEqual(self.built(), links | {"CC obj/core/extra.o"})
        source.unlink()
        self.assertEqual(self.built(), links)

    def test_switches_that_do_not_exist_are_refused(self):
        for flags, allowed in ("RDMA=maybe", "allowed are yes and no"), ("SAN=memory", "allowed are address"):
            self.assertIn(allowed, self.expect(2, self.make(flags=flags)))

    def test_clean_goes_alone(self):
        self.assertIn("make clean && make library", self.expect(2, self.make("clean", "library")))
        self.assertEqual(self.built(), set())

    def test_clean_removes_only_a_build(self):
        other = self.folder / "mine"
        other.mkdir()
        self.assertIn("is no build folder", self.expect(2, self.make("clean", f"O={other}")))
        self.assertTrue(other.exists())
        self.expect(0, self.make("-n", f"O={self.folder}/out"))
        self.assertTrue((self.folder / "out").exists())
        self.expect(0, self.make("clean", f"O={self.folder}/out"))
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    suite.main("rebuild")
