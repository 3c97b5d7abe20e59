# make install: library, headers, programs, the examples' sources and xrdma-reactor.pc under $(DESTDIR)$(PREFIX).

PC := $(O)/xrdma-reactor.pc

.PHONY: install
install: library programs
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@PACKAGES@|$(LIB_PKGS)|' \
		mk/xrdma-reactor.pc.in >$(PC)
	@mk/install '$(DESTDIR)' '$(PREFIX)' \
		'$(LIB_SO).$(ABI)=lib/libxrdma-reactor.so.$(VERSION)' \
		'libxrdma-reactor.so.$(VERSION)>lib/libxrdma-reactor.so.$(ABI)' \
		'libxrdma-reactor.so.$(ABI)>lib/libxrdma-reactor.so' \
		'$(LIB_A)=lib/libxrdma-reactor.a' \
		'$(PC)=lib/pkgconfig/xrdma-reactor.pc' \
		$(foreach h,$(STAGED_HEADERS),'$(h)=include/xrdma/$(notdir $(h))') \
		$(foreach e,$(wildcard apps/examples/*.c),'$(e)=share/doc/xrdma-reactor/examples/$(notdir $(e))') \
		$(foreach p,$(APP_BIN),'$(p)=bin/$(notdir $(p))')
