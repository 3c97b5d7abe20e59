# What must be installed before something can be built or tested. Only Debian's own packages, only by name.

.PHONY: packages packages-build packages-check packages-lint packages-rdma packages-lab
packages: packages-check packages-lint $(if $(filter no,$(RDMA)),,packages-lab)

packages-build:
	@mk/packages build

packages-check:
	@mk/packages build check

packages-lint:
	@mk/packages build lint

packages-rdma:
	@mk/packages build check rdma

packages-lab:
	@mk/packages build check lab
