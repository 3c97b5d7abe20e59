# Test programs and how they are run. tests/unit/PATH/NOUN_test.c becomes build/tests/unit/PATH/NOUN_test, linked with
# the library's objects so that private functions are in reach; each is a CUnit program (tests/unit/unit.h). Other
# sources in tests/unit/ are helpers for any of them. A test that defines __wrap_NAME stands in for what other files of
# the library call NAME (ld's --wrap). tests/integration/NOUN_test.py drives the built programs as processes; it finds
# them under $XR_BUILD.

UNIT_FOUND  := $(shell find tests/unit -name '*.c' 2>/dev/null | sort)
UNIT_FAKE   := $(call fake_users,$(UNIT_FOUND))
UNIT_ALL    := $(if $(filter yes,$(RDMA)),$(UNIT_FOUND),$(filter-out $(UNIT_FAKE),$(UNIT_FOUND)))
UNIT_SRC    := $(filter %_test.c,$(UNIT_ALL))
UNIT_BIN    := $(UNIT_SRC:%.c=$(O)/%)
UNIT_HELPER := $(patsubst %.c,$(O)/obj/%.o,$(filter-out $(UNIT_SRC) $(UNIT_FAKE),$(UNIT_ALL)))
UNIT_OBJ    := $(UNIT_SRC:%.c=$(O)/obj/%.o) $(UNIT_HELPER)
UNIT_LIBS    = $(LIB_LIBS)

.PHONY: tests
tests: $(UNIT_BIN)
all: tests

$(UNIT_OBJ): | $(LIB_GEN)

wraps_of = $$(nm $(1) | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')

$(UNIT_BIN): $(O)/tests/%: $(O)/obj/tests/%.o $(UNIT_HELPER) $(LIB_OBJ) $(OBJECTS_STAMP)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) $(call wraps_of,$(O)/obj/tests/$*.o) -o $@ $(filter %.o,$^) $(UNIT_LIBS) -lcunit -lm

ifeq ($(RDMA),yes)
FAKE_BIN    := $(patsubst %.c,$(O)/%,$(filter %_test.c,$(UNIT_FAKE)))
FAKE_HELPER := $(patsubst %.c,$(O)/obj/%.o,$(filter-out %_test.c,$(UNIT_FAKE)))

$(FAKE_BIN): $(FAKE_HELPER) $(FAKE_OBJ)
$(FAKE_BIN): UNIT_LIBS = $(FAKE_LIBS)
$(FAKE_HELPER): | $(LIB_GEN)
tests: $(FAKE_SO) $(FAKE_DIR)/libibverbs.so.1

-include $(FAKE_HELPER:.o=.d)
endif

-include $(UNIT_OBJ:.o=.d)

# tests/integration/NOUN_test.c sees the library as any program does: the public headers and the static library.
NATIVE_SRC := $(sort $(wildcard tests/integration/*_test.c))
NATIVE_BIN := $(NATIVE_SRC:%.c=$(O)/%)
NATIVE_OBJ := $(NATIVE_SRC:%.c=$(O)/obj/%.o)
tests: $(NATIVE_BIN)

$(NATIVE_OBJ): COMPILE = $(APP_COMPILE) -I.
$(NATIVE_OBJ): | $(STAGED_HEADERS)

$(NATIVE_BIN): $(O)/tests/%: $(O)/obj/tests/%.o $(O)/obj/tests/unit/unit.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS) -lcunit

-include $(NATIVE_OBJ:.o=.d)

# A peer of limit.py's that reads its answers late.
LATE_READER := $(O)/tests/integration/late_reader
tests: $(LATE_READER)

$(O)/obj/tests/integration/late_reader.o: COMPILE = $(APP_COMPILE)
$(O)/obj/tests/integration/late_reader.o: | $(STAGED_HEADERS)

$(LATE_READER): $(O)/tests/%: $(O)/obj/tests/%.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIB_A) $(LIB_LIBS)

-include $(O)/obj/tests/integration/late_reader.d

# For tests/lab/check: the pools on the NUMA nodes of a guest of the lab, with the library's objects like a unit test.
NUMA_BIN := $(O)/tests/numa_placement
NUMA_OBJ := $(patsubst %.c,$(O)/obj/%.o,$(sort $(wildcard tests/lab/*.c)))
tests: $(NUMA_BIN)

$(NUMA_OBJ): | $(LIB_GEN)

$(NUMA_BIN): $(NUMA_OBJ) $(O)/obj/tests/unit/unit.o $(LIB_OBJ) $(OBJECTS_STAMP)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIB_LIBS) -lcunit

-include $(NUMA_OBJ:.o=.d)

# For make bench, programs of one file: yardsticks that know nothing of the library, and those that are measured.
BENCH_SRC  := $(sort $(wildcard tests/bench/*.c))
BENCH_BIN  := $(BENCH_SRC:%.c=$(O)/%)
BENCH_OURS := $(patsubst %.c,$(O)/%,$(shell grep -l '<xrdma/' $(BENCH_SRC) /dev/null))
tests: $(BENCH_BIN)

$(BENCH_OURS): $(LIB_OBJ) $(OBJECTS_STAMP)
$(BENCH_OURS): BENCH_LIBS = $(LIB_LIBS)
$(BENCH_BIN): $(O)/tests/bench/%: $(O)/obj/tests/bench/%.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(BENCH_LIBS)

-include $(BENCH_BIN:$(O)/%=$(O)/obj/%.d)

INTEGRATION := $(sort $(wildcard tests/integration/*_test.py))
BUILD_TESTS := $(sort $(wildcard tests/build/*_test.py))

# What the programs are told: where the build is, and what it is made of.
export XR_BUILD = $(abspath $(O))
export XR_SAN = $(SAN)
export ASAN_OPTIONS = strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS = print_stacktrace=1
export TSAN_OPTIONS = second_deadlock_stack=1

# A sanitizer makes a program several times slower.
RUN_TIMEOUT = $(if $(SAN),300,120)
RUN = mk/run-tests --log-dir $(O)/log --timeout $(RUN_TIMEOUT) $(if $(findstring thread,$(SAN)),--no-aslr)

.PHONY: run-build run-unit run-native run-fuzz run-matrix run-san-address run-san-thread run-sanitized
run-build: all
	@$(RUN) --name build --plain true

run-unit: tests
	@$(RUN) --name unit $(UNIT_BIN)

run-native: all
	@$(RUN) --name native $(NATIVE_BIN) $(NUMA_BIN) $(INTEGRATION)

run-fuzz: FUZZ_S = 3
run-fuzz: fuzz

# The same sources in every form that they can take; each is built whole, and its unit tests run.
MATRIX = $(BUILD) O=$(O)/matrix/$(1) $(2) all run-unit
run-matrix: all
	+@$(RUN) --name matrix --timeout 900 \
		'$(call MATRIX,clang,CC=clang)' '$(call MATRIX,tcp,RDMA=no)' '$(call MATRIX,debug,DEBUG=1)' $(BUILD_TESTS)

run-san-address:
	+@$(BUILD) O=$(O)/san-address SAN=address$(comma)undefined run-sanitized

run-san-thread:
	+@$(BUILD) O=$(O)/san-thread SAN=thread run-sanitized

run-sanitized: all
	@$(RUN) --name san-$(firstword $(subst $(comma),$(space),$(SAN))) $(UNIT_BIN) $(NATIVE_BIN) $(NUMA_BIN) $(INTEGRATION)

# What takes longer: the rare failure of one run in many, and inputs that a few seconds do not reach.
REPEAT ?= 3

BENCHES := tests/bench/run tests/bench/workers tests/bench/memory tests/bench/idle

.PHONY: run-repeat run-long run-fuzz-long run-bench bench
run-repeat: all
	@$(RUN) --name repeat --repeat $(REPEAT) $(UNIT_BIN) $(NATIVE_BIN) $(NUMA_BIN) $(INTEGRATION)

# Tests whose length may be chosen, at the length that the figures of the documentation stand on.
run-long: all
	@XR_IDLE_S=10 $(RUN) --name long tests/integration/idle_test.py

run-fuzz-long: FUZZ_S = 60
run-fuzz-long: fuzz

run-bench: all
	@$(RUN) --name bench --plain --timeout 600 $(BENCHES)

bench: all
	@for bench in $(BENCHES); do $$bench || exit; done
