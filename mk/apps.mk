# The programs: apps/NAME/*.c (+ *.proto) become build/bin/NAME. They see the staged public headers and nothing else.
# The examples: apps/examples/NAME.c becomes build/examples/NAME, where the packages that it stands on are installed.

APPS := $(notdir $(patsubst %/,%,$(dir $(wildcard apps/*/main.c))))
APP_CPPFLAGS := -D_GNU_SOURCE -I$(O)/include -I$(O)/gen/apps -I$(O)/gen
APP_COMPILE   = $(CC) $(XR_CFLAGS) $(APP_CPPFLAGS) $(CPPFLAGS) $(CFLAGS)

# What a program links beside the library.
APP_xr-perf_LIBS := -lcjson -lm

define app
APP_$(1)_SRC := $$(sort $$(wildcard apps/$(1)/*.c))
APP_$(1)_GEN := $$(patsubst %.proto,$(O)/gen/%.pb-c.c,$$(wildcard apps/$(1)/*.proto))
APP_$(1)_OBJ := $$(APP_$(1)_SRC:%.c=$(O)/obj/%.o) $$(APP_$(1)_GEN:$(O)/gen/%.c=$(O)/obj/gen/%.o)
$$(APP_$(1)_OBJ): COMPILE = $$(APP_COMPILE)
$$(APP_$(1)_OBJ): | $$(STAGED_HEADERS) $$(APP_$(1)_GEN)
$(O)/bin/$(1): $$(APP_$(1)_OBJ) $(LIB_A)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D) && $$(LINK) -o $$@ $$(APP_$(1)_OBJ) $(LIB_A) $(LIB_LIBS) $$(APP_$(1)_LIBS)
APP_BIN += $(O)/bin/$(1)
APP_GEN += $$(APP_$(1)_GEN)
-include $$(APP_$(1)_OBJ:.o=.d)
endef

APP_BIN :=
APP_GEN :=
$(foreach a,$(APPS),$(eval $(call app,$(a))))

.PHONY: programs
programs: $(APP_BIN)
	@:
all: programs

EXAMPLE_uv-echo_PKGS := libuv

EXAMPLES := $(foreach e,$(basename $(notdir $(sort $(wildcard apps/examples/*.c)))),\
	$(if $(EXAMPLE_$(e)_PKGS),$(if $(shell $(PKG_CONFIG) --exists $(EXAMPLE_$(e)_PKGS) && echo yes),$(e)),$(e)))
EXAMPLE_BIN := $(EXAMPLES:%=$(O)/examples/%)
EXAMPLE_OBJ := $(EXAMPLES:%=$(O)/obj/apps/examples/%.o)
$(EXAMPLE_OBJ): COMPILE = $(APP_COMPILE)
$(EXAMPLE_OBJ): | $(STAGED_HEADERS)
$(EXAMPLE_BIN): $(O)/examples/%: $(O)/obj/apps/examples/%.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $< $(LIB_A) $(LIB_LIBS) \
		$(if $(EXAMPLE_$*_PKGS),$$($(PKG_CONFIG) --libs $(EXAMPLE_$*_PKGS)))
-include $(EXAMPLE_OBJ:.o=.d)

.PHONY: examples
examples: $(EXAMPLE_BIN)
	@:
all: examples
