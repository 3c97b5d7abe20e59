# Compiler, flags and the switches a user may set: CC, DEBUG, SAN, RDMA, V, CFLAGS, LDFLAGS.

ifeq ($(origin CC),default)
CC := gcc
endif
AR      ?= ar
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
RDMA    ?= yes
SAN     ?=
DEBUG   ?= 0
V       ?= 0

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(patsubst $(O)/%,%,$(2))')

WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wvla -Werror

XR_CFLAGS := -std=gnu11 $(WARN) -g -fvisibility=hidden -fno-strict-aliasing -fno-semantic-interposition -MMD -MP
XR_CFLAGS += $(if $(filter 1,$(DEBUG)),-O0 -DXR_DEBUG=1,-O2)
XR_CFLAGS += $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
XR_CFLAGS += $(if $(filter thread,$(SAN)),$(if $(findstring gcc,$(CC)),-Wno-tsan))
XR_CFLAGS += $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)

XR_CPPFLAGS := -D_GNU_SOURCE -DXR_VERSION='"$(VERSION)"' -I. -Icore -Ipoll -Imem -Inet -I$(O)/gen
XR_CPPFLAGS += $(if $(filter yes,$(RDMA)),-DXR_RDMA=1)

XR_LDFLAGS := $(if $(SAN),-fsanitize=$(SAN)) -pthread

LIB_PKGS := liburcu-qsbr libprotobuf-c numa $(if $(filter yes,$(RDMA)),libibverbs)
LIB_LIBS := $(shell $(PKG_CONFIG) --libs $(LIB_PKGS)) -lurcu-common

COMPILE = $(CC) $(XR_CFLAGS) $(XR_CPPFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK    = $(CC) $(XR_LDFLAGS) $(LDFLAGS)

# A changed flag rebuilds: every object depends on this stamp, rewritten only when the command lines differ.
FLAGS_STAMP := $(O)/flags
FLAGS_LINE  := $(COMPILE) | $(LINK) | $(LIB_LIBS)
$(shell mkdir -p $(O) && printf '%s\n' '$(subst ','\'',$(FLAGS_LINE))' >$(O)/flags.new && \
	{ cmp -s $(O)/flags.new $(FLAGS_STAMP) || cp $(O)/flags.new $(FLAGS_STAMP); } && rm -f $(O)/flags.new)
