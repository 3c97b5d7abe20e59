# fakeverbs: a stand-in for libibverbs (tests/fakeverbs/fakeverbs.h). Unit tests in these folders, and all others that
# include its header, are linked with its objects in libibverbs' place.

FAKE_SRC  := $(filter-out tests/fakeverbs/shared.c,$(sort $(wildcard tests/fakeverbs/*.c)))
FAKE_OBJ  := $(FAKE_SRC:%.c=$(O)/obj/%.o)
FAKE_LIBS := $(filter-out -libverbs,$(LIB_LIBS))
FAKE_DIRS := tests/unit/net/verbs/% tests/unit/fakeverbs/%

# Of the unit tests' sources given, those that want it.
fake_users = $(sort $(filter $(FAKE_DIRS),$(1)) $(shell grep -l '"tests/fakeverbs/fakeverbs.h"' $(1) /dev/null))

-include $(FAKE_OBJ:.o=.d)

# The same as a shared object that programs load as libibverbs.so.1, with the version tags that they ask for:
#
#   LD_LIBRARY_PATH=build/tests/fakeverbs build/bin/xr-perf ...
#
# It shows one device, fake0 at 127.0.0.1, and at the end of the program what was violated and what is left.
FAKE_SO  := $(O)/tests/libfakeverbs.so
FAKE_DIR := $(O)/tests/fakeverbs
FAKE_SHARED_OBJ := $(FAKE_OBJ) $(O)/obj/tests/fakeverbs/shared.o

$(FAKE_SHARED_OBJ): XR_CFLAGS += -fvisibility=default

$(FAKE_SO): $(FAKE_SHARED_OBJ) tests/fakeverbs/exports.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -shared -Wl,-soname,libibverbs.so.1 \
		-Wl,--version-script=tests/fakeverbs/exports.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-o $@ $(FAKE_SHARED_OBJ)

$(FAKE_DIR)/libibverbs.so.1: $(FAKE_SO)
	$(Q)mkdir -p $(@D) && ln -sf ../$(notdir $<) $@

-include $(O)/obj/tests/fakeverbs/shared.d
