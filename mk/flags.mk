# Compiler, flags and the switches a user may set: CC, DEBUG, SAN, RDMA, V, CFLAGS, LDFLAGS.

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin AR),default)
AR := ar
endif
LD_R       ?= ld
OBJCOPY    ?= objcopy
PKG_CONFIG ?= pkg-config
PROTOC_C   ?= protoc-c
RDMA       ?= yes
SAN        ?=
DEBUG      ?= 0
V          ?= 0

ifeq ($(filter yes no,$(RDMA)),)
$(error RDMA=$(RDMA): allowed are yes and no)
endif
ifneq ($(filter-out address undefined thread,$(subst $(comma),$(space),$(SAN))),)
$(error SAN=$(SAN): allowed are address, undefined, address,undefined and thread)
endif

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(O)/%,%,$(2))')

WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wvla -Werror

XR_CFLAGS := -std=gnu11 $(WARN) -g -fvisibility=hidden -fno-strict-aliasing -fno-semantic-interposition -MMD -MP
XR_CFLAGS += $(if $(filter 1,$(DEBUG)),-O0 -DXR_DEBUG=1,-O2)
XR_LDFLAGS := -pthread -Wl,--as-needed

ifneq ($(SAN),)
XR_CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer
XR_LDFLAGS += -fsanitize=$(SAN)
endif
ifneq ($(findstring undefined,$(SAN)),)
XR_CFLAGS += -fno-sanitize-recover=undefined
endif
# gcc says of each fence that its thread sanitizer does not model it; clang has no such warning to switch off.
ifneq ($(findstring thread,$(SAN)),)
XR_CFLAGS += $(if $(findstring clang,$(shell $(CC) --version)),,-Wno-tsan)
endif

XR_CPPFLAGS := -D_GNU_SOURCE -DXR_VERSION='"$(VERSION)"' -I. -Icore -Ipoll -Imem -Inet -I$(O)/gen
XR_CPPFLAGS += $(if $(filter yes,$(RDMA)),-DXR_RDMA=1)

# What the library stands on; xrdma-reactor.pc names the same for those who link it statically.
LIB_PKGS := liburcu-qsbr liburcu-cds libprotobuf-c numa $(if $(filter yes,$(RDMA)),libibverbs)
LIB_LIBS := $(shell $(PKG_CONFIG) --libs $(LIB_PKGS))
ifeq ($(strip $(LIB_LIBS)),)
$(error $(PKG_CONFIG) does not find all of: $(LIB_PKGS). `make packages` installs what is missing)
endif

COMPILE = $(CC) $(XR_CFLAGS) $(XR_CPPFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK    = $(CC) $(XR_LDFLAGS) $(LDFLAGS)

# $(call stamp,FILE,TEXT): rewrites FILE only when TEXT is not what it holds; what depends on it is rebuilt then.
stamp = $(shell mkdir -p $(dir $(1)) && printf '%s\n' '$(subst ','\'',$(2))' >$(1).new && \
	if cmp -s $(1).new $(1); then rm -f $(1).new; else mv $(1).new $(1); fi)

FLAGS_STAMP := $(O)/flags
$(call stamp,$(FLAGS_STAMP),$(COMPILE) | $(LINK) | $(LIB_LIBS))
