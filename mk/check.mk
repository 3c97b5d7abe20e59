# The front doors: check, its parts and demo. Each installs what is missing, then starts the make that builds and runs.

# Everything is built on as many processors as there are, unless the user's make has job slots of its own.
JOBS  = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
BUILD = $(MAKE) --no-print-directory $(JOBS)

# Parts run one at a time: some of them watch clocks.
ifeq ($(filter-out $(PLAIN_GOALS),$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

CHECK_PARTS := build unit native model fuzz $(if $(filter no,$(RDMA)),,lab lab2 lab-small) lint format matrix san-address san-thread
FULL_PARTS  := $(CHECK_PARTS) model-full repeat long fuzz-long bench

.PHONY: check check-full $(FULL_PARTS:%=check-%)
check: packages
	@mk/check "$(MAKE)" $(CHECK_PARTS)

check-full: export XR_BURST_S ?= 20
check-full: export XR_STRESS_S ?= 10
check-full: export XR_LIMIT_ROUNDS ?= 3
check-full: packages
	@mk/check "$(MAKE)" $(FULL_PARTS)

$(FULL_PARTS:%=check-%): check-%: packages-check
	+@$(BUILD) run-$*

check-lint check-format: packages-lint

.PHONY: lint format-check format
lint: check-lint
format-check: check-format
format: packages-lint
	+@$(BUILD) format-files

.PHONY: demo
demo: packages-build
	+@$(BUILD) programs
	@mk/demo $(O)/bin/xr-perf
