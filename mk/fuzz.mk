# Fuzzing: tests/fuzz/NAME_fuzz.c becomes build/fuzz/NAME_fuzz, a libFuzzer program. It is linked with the library
# compiled once more, by clang and instrumented, whatever CC and SAN the rest is built with.
#
#   make fuzz FUZZ_S=30     every target for that many seconds
#
# Inputs start from the captured messages of tests/vectors. What a target has learned stays in build/fuzz/corpus/NAME,
# an input that broke it in build/fuzz/NAME-crash-*, what it said in build/fuzz/NAME.log.

FUZZ_S  ?= 30
FUZZ_CC ?= clang

FUZZ_DIR  := $(O)/fuzz
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/*_fuzz.c))
FUZZ_BIN  := $(FUZZ_SRC:tests/fuzz/%.c=$(FUZZ_DIR)/%)
FUZZ_OBJ  := $(FUZZ_SRC:%.c=$(FUZZ_DIR)/obj/%.o)
FUZZ_LIB  := $(LIB_SRC:%.c=$(FUZZ_DIR)/obj/%.o) $(LIB_GEN:$(O)/gen/%.c=$(FUZZ_DIR)/obj/gen/%.o)
FUZZ_A    := $(FUZZ_DIR)/library.a
FUZZ_SEED := $(patsubst tests/vectors/%.hex,$(FUZZ_DIR)/seeds/%,$(sort $(wildcard tests/vectors/*.hex)))

FUZZ_SAN     := address,undefined
FUZZ_CFLAGS  := -std=gnu11 $(WARN) -g -O1 -fno-omit-frame-pointer -fno-strict-aliasing -MMD -MP
FUZZ_CFLAGS  += -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -fno-sanitize-recover=undefined
FUZZ_COMPILE := $(FUZZ_CC) $(FUZZ_CFLAGS) $(XR_CPPFLAGS)
FUZZ_LINK    := $(FUZZ_CC) -fsanitize=fuzzer,$(FUZZ_SAN) -pthread

FUZZ_STAMP := $(FUZZ_DIR)/flags
$(call stamp,$(FUZZ_STAMP),$(FUZZ_COMPILE) | $(FUZZ_LINK) | $(FUZZ_LIB))

.PHONY: fuzz fuzz-build
ifneq ($(shell command -v $(FUZZ_CC)),)
fuzz-build: $(FUZZ_BIN)
endif
fuzz: fuzz-build $(FUZZ_SEED)
	$(Q)mk/fuzz.sh '$(FUZZ_DIR)' '$(FUZZ_S)' $(notdir $(FUZZ_BIN))

$(FUZZ_OBJ) $(FUZZ_LIB): | $(LIB_GEN)

$(FUZZ_DIR)/obj/%.o: %.c $(FUZZ_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(FUZZ_COMPILE) -c -o $@ $<

$(FUZZ_DIR)/obj/gen/%.o: $(O)/gen/%.c $(FUZZ_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(FUZZ_COMPILE) -c -o $@ $<

# An archive, so that a target links what it calls and no more.
$(FUZZ_A): $(FUZZ_LIB) $(FUZZ_STAMP)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(FUZZ_LIB)

$(FUZZ_BIN): $(FUZZ_DIR)/%: $(FUZZ_DIR)/obj/tests/fuzz/%.o $(FUZZ_A)
	$(call say,LD,$@)
	$(Q)$(FUZZ_LINK) -o $@ $< $(FUZZ_A) $(LIB_LIBS)

$(FUZZ_DIR)/seeds/%: tests/vectors/%.hex
	$(Q)mkdir -p $(@D) && tr -d '\n' <$< | tr a-f A-F | basenc -d --base16 >$@

-include $(FUZZ_OBJ:.o=.d) $(FUZZ_LIB:.o=.d)
