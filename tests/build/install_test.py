#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""make install and uninstall, and what others build against: symbols, headers, xrdma-reactor.pc."""

import os
import re

import suite

CONSUMER = """
#include <stdio.h>
#include <xrdma/xrdma.h>

int
main(int argc, char **argv)
{
	int next = xr_init(argc, argv);

	if (next < 0)
		return 1;
	xr_stop();
	if (xr_run())
		return 1;
	xr_fini();
	puts(xr_version());
	return 0;
}
"""

# Names that a consumer may use for functions of its own, although the library has such functions inside.
CLASHING = ["option_int", "lcore_find", "log_enabled", "mem_init", "reactor_run", "conn_close"]


def functions_declared(headers):
    text = "\n".join(header.read_text(encoding="utf-8") for header in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"XR_API[^;]*?\b(xr_\w+)\(", text))


class Install(suite.Case):
    def make(self, *arguments):
        return self.expect(0, suite.run("make", f"O={suite.BUILD}", *arguments))

    def put(self, prefix, destdir=""):
        self.make("install", f"PREFIX={prefix}", f"DESTDIR={destdir}")

    def files(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}

    def everything(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*")}

    def installed(self):
        """A prefix with the library in it, and an environment that finds it."""
        prefix = self.folder / "usr"
        self.put(prefix)
        return prefix, {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}

    def test_destdir_and_prefix_are_where_it_goes(self):
        stage = self.folder / "stage"
        self.put("/opt/xr", stage)
        files = self.files(stage)
        self.assertTrue(all(name.startswith("opt/xr/") for name in files), files)
        for name in ("lib/libxrdma-reactor.so", "lib/libxrdma-reactor.so.0", "lib/libxrdma-reactor.a",
                     "lib/pkgconfig/xrdma-reactor.pc", "include/xrdma/xrdma.h", "bin/xr-perf"):
            self.assertIn("opt/xr/" + name, files)
        description = (stage / "opt/xr/lib/pkgconfig/xrdma-reactor.pc").read_text(encoding="utf-8")
        self.assertIn("prefix=/opt/xr\n", description)
        self.assertNotIn(str(self.folder), description)
        self.assertEqual((stage / "opt/xr/lib/libxrdma-reactor.so").readlink().name, "libxrdma-reactor.so.0")

    def test_uninstall_takes_everything_that_install_made_and_nothing_else(self):
        stage = self.folder / "stage"
        for name in "usr/local/lib/other.so", "usr/local/include/other.h":
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).touch()
        (stage / "usr/local/bin").mkdir()
        before = self.everything(stage)
        self.put("/usr/local", stage)
        self.put("/usr/local", stage)
        (stage / "usr/local/include/xrdma/mine.h").touch()
        self.make("uninstall", "PREFIX=/usr/local", f"DESTDIR={stage}")
        self.assertEqual(self.everything(stage) - before, {"usr/local/include/xrdma", "usr/local/include/xrdma/mine.h"})
        self.assertEqual(before - self.everything(stage), set())

    def test_an_empty_folder_is_empty_again(self):
        self.put("/a/b", self.folder / "stage")
        self.make("uninstall", "PREFIX=/a/b", f"DESTDIR={self.folder}/stage")
        self.assertFalse((self.folder / "stage").exists())

    def test_uninstall_of_nothing_says_so(self):
        process = suite.run("make", "uninstall", f"DESTDIR={self.folder}/nowhere")
        self.assertIn("nothing to remove", self.expect(2, process))

    def test_a_relative_prefix_is_refused(self):
        process = suite.run("make", f"O={suite.BUILD}", "install", "PREFIX=usr", f"DESTDIR={self.folder}")
        self.assertIn("must begin with /", self.expect(2, process))

    def compile(self, source, *flags):
        program = self.folder / "program"
        self.expect(0, suite.run("cc", "-Wall", "-Werror", source, "-o", program, *flags))
        return program

    def consumer(self, text=CONSUMER):
        source = self.folder / "consumer.c"
        source.write_text(text, encoding="utf-8")
        return source

    def pkg_config(self, env, *arguments):
        return self.expect(0, suite.run("pkg-config", *arguments, "xrdma-reactor", env=env)).split()

    def runs(self, program, env):
        self.assertRegex(self.expect(0, suite.run(program, "-l", min(os.sched_getaffinity(0)), env=env)),
                         r"(?m)^\d+\.\d+\.\d+$")

    def test_a_program_links_the_shared_library(self):
        _, env = self.installed()
        flags = self.pkg_config(env, "--cflags", "--libs")
        self.assertFalse([flag for flag in flags if flag.startswith("-l") and flag != "-lxrdma-reactor"], flags)
        program = self.compile(self.consumer(), *flags)
        needed = self.expect(0, suite.run("readelf", "-d", program))
        self.assertIn("[libxrdma-reactor.so.0]", needed)
        self.runs(program, env)

    def test_a_program_links_the_static_library_beside_names_of_its_own(self):
        prefix, env = self.installed()
        for shared in prefix.glob("lib/*.so*"):
            shared.unlink()
        own = "".join(f"int {name}(void);\nint {name}(void) {{ return 0; }}\n" for name in CLASHING)
        program = self.compile(self.consumer(CONSUMER + own), *self.pkg_config(env, "--static", "--cflags", "--libs"))
        self.assertNotIn("xrdma-reactor", self.expect(0, suite.run("readelf", "-d", program)))
        self.runs(program, env)

    def test_the_library_shows_what_the_headers_declare_and_nothing_else(self):
        prefix, _ = self.installed()
        declared = functions_declared(prefix.glob("include/xrdma/*.h"))
        self.assertGreater(len(declared), 50)
        for library, options in ("libxrdma-reactor.so", ["-D"]), ("libxrdma-reactor.a", ["-g"]):
            told = self.expect(0, suite.run("nm", *options, "--defined-only", prefix / "lib" / library))
            defined = set(re.findall(r" [TDBRVW] (\w+)", told))
            with self.subTest(library):
                self.assertEqual(defined, declared)

    def test_each_header_stands_alone_in_c_and_in_cpp(self):
        prefix, _ = self.installed()
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix}/include"]
        for header in sorted(prefix.glob("include/xrdma/*.h")):
            for compiler, name in (("gcc -std=c11", "a.c"), ("g++ -std=c++11", "a.cc"), ("clang++ -std=c++20", "a.cc")):
                with self.subTest(header=header.name, compiler=compiler):
                    source = self.folder / name
                    source.write_text(f"#include <xrdma/{header.name}>\n#include <xrdma/{header.name}>\n",
                                      encoding="utf-8")
                    self.assertEqual(self.expect(0, suite.run(*compiler.split(), *warnings, source)), "")


if __name__ == "__main__":
    suite.main("install")
