# Lint: clang-tidy, cppcheck, codespell, shellcheck, the floor check; and the layout of the C files by .clang-format.

C_DIRS     := core poll mem net apps tests
ALL_C       = $(sort $(shell find $(C_DIRS) -name '*.c'))
ALL_HEADERS = $(sort $(shell find $(C_DIRS) -name '*.h'))
SCRIPTS     = $(sort $(shell grep -rlE --exclude-dir=$(O) '^\#!/.*\b(sh|bash)$$' mk tests apps .ci))
PROSE       = $(C_DIRS) mk doc .ci $(wildcard *.md) GNUmakefile

LINTS := lint-tidy lint-cppcheck lint-codespell lint-shellcheck lint-floors
.PHONY: run-lint run-format format-files $(LINTS)

run-lint:
	+@$(RUN) --name lint --timeout 900 --plain $(LINTS:%='$(BUILD) -k %')

run-format:
	@$(RUN) --name format --plain 'clang-format --dry-run -Werror $(ALL_C) $(ALL_HEADERS)'

format-files:
	@clang-format -i $(ALL_C) $(ALL_HEADERS)

# One clang-tidy a file, kept as a stamp: only what changed is looked at again. It speaks only of what it finds. Of the
# examples those whose libraries are there.
TIDY_C = $(filter-out apps/examples/%,$(ALL_C)) $(EXAMPLES:%=apps/examples/%.c)
TIDY_STAMPS = $(TIDY_C:%.c=$(O)/lint/%.tidy)
lint-tidy: $(TIDY_STAMPS)

TIDY_FLAGS = -std=gnu11 -Wall -Wextra $(if $(filter apps/%,$<),$(APP_CPPFLAGS),$(XR_CPPFLAGS) -I$(O)/include)

$(O)/lint/%.tidy: %.c .clang-tidy tests/.clang-tidy $(ALL_HEADERS) | $(STAGED_HEADERS) $(LIB_GEN) $(APP_GEN)
	$(Q)mkdir -p $(@D)
	$(Q)clang-tidy --quiet $< -- $(TIDY_FLAGS) >$@.log 2>&1 || { cat $@.log; exit 1; }
	$(Q)mv $@.log $@

# Leaks and null pointers are left to clang's analyzer and the address sanitizer: cppcheck loses sight of memory in
# compound literals, and its table of POSIX calls does not know where NULL is allowed.
CPPCHECK = cppcheck --quiet --error-exitcode=1 -j $$(nproc) --std=c11 --platform=unix64 \
	--library=posix,gnu,mk/cppcheck.cfg --cppcheck-build-dir=$(O)/lint/cppcheck \
	--enable=warning,performance,portability --inline-suppr --suppress=missingIncludeSystem --suppress=memleak \
	--suppress=nullPointer --suppress=varFuncNullUB --suppress=readdirCalled --suppress=strtokCalled:tests/* \
	-DPROTOBUF_C_VERSION_NUMBER=9999999

lint-cppcheck: $(STAGED_HEADERS) $(LIB_GEN) $(APP_GEN)
	@mkdir -p $(O)/lint/cppcheck
	@$(CPPCHECK) $(XR_CPPFLAGS) -I$(O)/include $(ALL_C)

lint-codespell:
	@codespell --skip '*.hex' --ignore-words-list fro,datas $(PROSE)

# SC2187: busybox's shell is looked at as dash, which is near enough.
lint-shellcheck:
	@shellcheck --exclude SC2187 $(SCRIPTS)

lint-floors:
	@mk/floor-check
