#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""mk/floor-check finds each kind of include that goes the wrong way, and only those."""

import suite

PUBLIC = {"core/xrdma/log.h": "", "mem/xrdma/iobuf.h": "#include <xrdma/log.h>\n", "net/xrdma/conn.h": ""}

WRONG = {
    "mem knows poll": ("mem/a.c", '#include "poll/reactor.h"'),
    "poll knows mem": ("poll/a.c", '#include "mem/block.h"'),
    "poll knows mem's public face": ("poll/a.c", "#include <xrdma/iobuf.h>"),
    "core looks up": ("core/a.h", '#  include "net/net.h"'),
    "core looks up through a public header": ("core/a.c", "#include <xrdma/conn.h>"),
    "core uses a library of another floor": ("core/a.c", "#include <protobuf-c/protobuf-c.h>"),
    "mem talks verbs": ("mem/a.c", "#include <infiniband/verbs.h>"),
    "a private header without its path": ("net/a.c", '#include "net.h"'),
    "a floor includes a program": ("net/a.c", '#include "apps/xr-perf/perf.h"'),
    "no such public header": ("net/a.c", "#include <xrdma/nothing.h>"),
    "a public header includes a private one": ("net/xrdma/port.h", '#include "net/port.h"'),
    "a public header shows a library": ("net/xrdma/port.h", "#include <urcu/list.h>"),
    "a public header shows protobuf-c": ("net/xrdma/port.h", "#include <protobuf-c/protobuf-c.h>"),
    "a public header shows it by another": ("net/xrdma/port.h", "#include <xrdma/protobuf.h>"),
    "the header for one library shows another": ("net/xrdma/protobuf.h", "#include <urcu/list.h>"),
    "a program includes a private header": ("apps/x/main.c", '#include "core/log.h"'),
    "a program includes a file of another": ("apps/x/main.c", '#include "apps/y/y.h"'),
    "a program uses a library of the floors": ("apps/x/main.c", "#include <urcu.h>"),
}

RIGHT = {
    "net/a.c": '#include "core/log.h"\n#include "mem/iobuf.h"\n#include "net/rpc/meta.pb-c.h"\n'
               "#include <xrdma/iobuf.h>\n#include <infiniband/verbs.h>\n#include <net/if.h>\n",
    "net/b.c": "#include <xrdma/protobuf.h>\n",
    "net/xrdma/protobuf.h": "#include <protobuf-c/protobuf-c.h>\n#include <xrdma/iobuf.h>\n",
    "core/a.c": "#include <urcu/wfcqueue.h>\n#include <numa.h>\n#include <stdio.h>\n",
    "mem/a.c": '#include "core/log.h"\n#include <numaif.h>\n',
    "apps/x/main.c": '#include "x.h"\n#include "apps/x/x.pb-c.h"\n#include <xrdma/conn.h>\n#include <cjson/cJSON.h>\n',
    "tests/unit/net/a_test.c": '#include "net/net.h"\n#include <CUnit/CUnit.h>\n',
}


class Floors(suite.Case):
    def check(self, files):
        for name, text in {**PUBLIC, **files}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return suite.run(suite.ROOT / "mk/floor-check", self.folder)

    def test_right_includes_pass(self):
        self.assertEqual(self.expect(0, self.check(RIGHT)), "")

    def test_wrong_includes_are_told(self):
        for what, (name, line) in WRONG.items():
            with self.subTest(what):
                told = self.expect(1, self.check({**RIGHT, name: "\n" + line + "\n"}))
                self.assertIn(f"{name}:2: includes ", told)
                self.assertEqual(told.count("\n"), 1, told)
                (self.folder / name).unlink()


if __name__ == "__main__":
    suite.main("floors")
