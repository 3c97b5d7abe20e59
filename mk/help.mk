# make help, clean, uninstall: what needs no build.

PREFIX  ?= /usr/local
DESTDIR ?=

define HELP
The two commands (each installs the Debian packages that are missing):
  make demo          build, run a server and a client on 127.0.0.1, print what they measured
  make check         build and run every test; the last line says how many passed, failed and were skipped

RDMA in a virtual machine (tests/lab/README.md):
  make demo-rdma     the demo over soft-RoCE
  make lab RUN='..'  run a command there as root; make lab2 HOST1='..' HOST2='..' in two of them on one wire

Build:
  make               the library, the programs and the test programs, in build/
  make install       library, headers, programs and xrdma-reactor.pc under $$(DESTDIR)$$(PREFIX)
  make uninstall     takes away exactly what install put there
  make clean         removes build/
  make packages      only installs what build, check and lint need

Parts of the check:
  $(CHECK_PARTS:%=check-%)
  make check-full    all of them, and what takes longer: $(filter-out $(CHECK_PARTS),$(FULL_PARTS))
  make lint          clang-tidy, cppcheck, codespell, shellcheck, and that includes go down only
  make fuzz          libFuzzer on each parser, FUZZ_S=30 seconds each
  make bench         ratios between our calls and a bare epoll echo of the same bytes; what loops and memory cost
  make bench-rdma    ratios between calls over soft-RoCE and perftest and rstream, in a guest of the lab; what idle ones cost
  make check-rdma DEV=mlx5_0   the tests of check-lab on this machine's own RDMA device
  make format        lays the C files out by .clang-format; make format-check only looks

Variables:
  O=DIR              build there instead of in build/
  V=1                show whole command lines
  DEBUG=1            no optimisation, assertions on
  SAN=LIST           sanitizers: address, undefined, address,undefined or thread
  CC=clang           another compiler; CFLAGS, CPPFLAGS and LDFLAGS are added to the build's own
  RDMA=no            TCP only, without libibverbs
  PREFIX=DIR         where install puts things (/usr/local)
  DESTDIR=DIR        a folder in front of PREFIX, for packaging
endef

.PHONY: help clean uninstall
help: export HELP_TEXT = $(HELP)
help:
	@printf '%s\n' "$$HELP_TEXT"

# O may have been mistaken: only a folder that a build has marked as its own is removed.
clean:
	@[ ! -e $(O) ] || [ -f $(O)/flags ] || { echo "$(O) is no build folder; it stays" >&2; exit 1; }
	@rm -rf $(O)

uninstall:
	@mk/install --remove '$(DESTDIR)' '$(PREFIX)'
