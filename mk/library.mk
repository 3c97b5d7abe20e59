# The library: objects of the four floors, the shared and the static form, and the staged public headers.

FLOORS   := core poll mem net
LIB_DIRS := core poll mem net net/handshake net/rpc $(if $(filter yes,$(RDMA)),net/verbs)
LIB_SRC  := $(sort $(wildcard $(addsuffix /*.c,$(LIB_DIRS))))

# Protobuf messages that the library speaks itself.
LIB_PROTO := $(sort $(wildcard $(addsuffix /*.proto,$(LIB_DIRS))))
LIB_GEN   := $(LIB_PROTO:%.proto=$(O)/gen/%.pb-c.c)

LIB_OBJ  := $(LIB_SRC:%.c=$(O)/obj/%.o) $(LIB_GEN:$(O)/gen/%.c=$(O)/obj/gen/%.o)

LIB_SO   := $(O)/libxrdma-reactor.so
LIB_A    := $(O)/libxrdma-reactor.a

PUBLIC_HEADERS := $(sort $(wildcard $(FLOORS:%=%/xrdma/*.h)))
STAGED_HEADERS := $(foreach h,$(PUBLIC_HEADERS),$(O)/include/xrdma/$(notdir $(h)))

.PHONY: library
library: $(LIB_SO) $(LIB_A) $(STAGED_HEADERS)
all: library

# Headers generated from protobuf must exist before anything compiles.
$(LIB_OBJ): | $(LIB_GEN)

$(O)/gen/%.pb-c.c $(O)/gen/%.pb-c.h &: %.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(O)/gen && $(PROTOC_C) --c_out=$(O)/gen $<

$(O)/obj/gen/%.o: $(O)/gen/%.c $(FLAGS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(COMPILE) -fPIC -c -o $@ $<

$(O)/obj/%.o: %.c $(FLAGS_STAMP)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(COMPILE) -fPIC -c -o $@ $<

# A source file that went away must leave the library too: its object is in no rule any more, but the list changed.
OBJECTS_STAMP := $(O)/objects
$(call stamp,$(OBJECTS_STAMP),$(LIB_OBJ))

$(LIB_SO).$(ABI): $(LIB_OBJ) $(OBJECTS_STAMP) mk/exports.map
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(notdir $@) -Wl,--version-script=mk/exports.map $(if $(SAN),,-Wl,-z,defs) \
		-o $@ $(LIB_OBJ) $(LIB_LIBS)

$(LIB_SO): $(LIB_SO).$(ABI)
	$(Q)ln -sf $(notdir $<) $@

# One relocatable object with the private symbols made local: an application's `list_add` never meets the library's.
$(LIB_A): $(LIB_OBJ) $(OBJECTS_STAMP)
	$(call say,AR,$@)
	$(Q)$(LD_R) -r -o $(O)/libxrdma-reactor.o $(LIB_OBJ) && \
		$(OBJCOPY) --localize-hidden $(O)/libxrdma-reactor.o && \
		rm -f $@ && $(AR) rcs $@ $(O)/libxrdma-reactor.o

define stage_header
$(O)/include/xrdma/$(notdir $(1)): $(1)
	@mkdir -p $$(@D) && cp $$< $$@
endef
$(foreach h,$(PUBLIC_HEADERS),$(eval $(call stage_header,$(h))))

-include $(LIB_OBJ:.o=.d)
