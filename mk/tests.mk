# Test programs: tests/unit/PATH/NOUN_test.c becomes build/tests/unit/PATH/NOUN_test, linked with the library's objects
# so that private functions are in reach. Each is a CUnit program (tests/unit/unit.h) and may use every helper that
# lies beside unit.c.

UNIT_SRC := $(shell find tests/unit -name '*_test.c' 2>/dev/null | sort)
UNIT_BIN := $(UNIT_SRC:%.c=$(O)/%)

UNIT_HELPER_SRC := $(filter-out %_test.c,$(wildcard tests/unit/*.c))
UNIT_HELPER_OBJ := $(UNIT_HELPER_SRC:%.c=$(O)/obj/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(O)/obj/%.o) $(UNIT_HELPER_OBJ)

.PHONY: tests
tests: $(UNIT_BIN)
all: tests

$(UNIT_OBJ): | $(LIB_GEN)

$(UNIT_BIN): $(O)/tests/%: $(O)/obj/tests/%.o $(UNIT_HELPER_OBJ) $(LIB_OBJ) $(OBJECTS_STAMP)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(filter %.o,$^) $(LIB_LIBS) -lcunit -lm

-include $(UNIT_OBJ:.o=.d)
