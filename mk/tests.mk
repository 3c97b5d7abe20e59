# Test programs: tests/unit/PATH/NOUN_test.c becomes build/tests/unit/PATH/NOUN_test, linked with the library's objects
# so that private functions are in reach. Each is a CUnit program (tests/unit/unit.h).

UNIT_SRC := $(shell find tests/unit -name '*_test.c' 2>/dev/null | sort)
UNIT_BIN := $(UNIT_SRC:%.c=$(O)/%)

.PHONY: tests
tests: $(UNIT_BIN)
all: tests

$(UNIT_BIN): $(O)/tests/%: $(O)/obj/tests/%.o $(O)/obj/tests/unit/unit.o $(LIB_OBJ)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $^ $(LIB_LIBS) -lcunit -lm

.PRECIOUS: $(O)/obj/tests/%.o
$(O)/obj/tests/%.o: | $(LIB_GEN)
-include $(UNIT_SRC:%.c=$(O)/obj/%.d) $(O)/obj/tests/unit/unit.d
