# What must be installed before something can be built or tested. Only Debian's own packages, only by name.

.PHONY: packages packages-build packages-check packages-lint
packages: packages-check packages-lint

packages-build:
	@mk/packages build

packages-check:
	@mk/packages build check

packages-lint:
	@mk/packages build lint
