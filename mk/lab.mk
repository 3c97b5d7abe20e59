# The lab: virtual machines with soft-RoCE, and the tests on real verbs. tests/lab/README.md is about it.
#
#   make lab RUN='ibv_devinfo'     make lab2 HOST1='ibv_rc_pingpong -g 1' HOST2='ibv_rc_pingpong -g 1 10.77.0.1'
#   make check-lab, check-lab2, check-lab-small    make check-rdma DEV=mlx5_0    make demo-rdma    make bench-rdma

LAB = LAB_FOLDER="$${LAB_FOLDER:-$(abspath $(O))/lab}" tests/lab

.PHONY: lab lab2
# Commands go through the environment: make neither reads their dollars nor minds their quotes and lines.
lab lab2: packages-lab
lab: export LAB_RUN := $(value RUN)
lab:
	@$(LAB)/run "$$LAB_RUN"

lab2: export LAB_HOST1 := $(value HOST1)
lab2: export LAB_HOST2 := $(value HOST2)
lab2:
	@$(LAB)/run2 "$$LAB_HOST1" "$$LAB_HOST2"

.PHONY: run-lab run-lab2 run-lab-small check-rdma run-rdma demo-rdma
check-lab: packages-lab

# Two nodes, and a page of 1 GiB that nothing but numa_placement asks for.
run-lab: programs examples $(NUMA_BIN)
	@LAB_TIMEOUT=$${LAB_TIMEOUT:-1500} LAB_NUMA=$${LAB_NUMA:-2} LAB_MEM=$${LAB_MEM:-5120} \
		LAB_APPEND="$${LAB_APPEND-hugepagesz=1G hugepages=1}" $(LAB)/run \
		"XR_BURST_S=$${XR_BURST_S:-5} exec tests/lab/check '$(abspath $(O))' \"\$$LAB_RESULTS\""

# Two guests on a wire that loses packets.
TWO_HOSTS = XR_BUILD=$(abspath $(O)) tests/lab/two_hosts.py
check-lab2: packages-lab
run-lab2: programs
	@LAB_FOLDER="$${LAB_FOLDER:-$(abspath $(O))/lab}" LAB_TIMEOUT=$${LAB_TIMEOUT:-500} \
		$(RUN) --name lab2 --timeout 600 'tests/lab/run2 "$(TWO_HOSTS) serve" "$(TWO_HOSTS) test"'

# As little memory as a server with default flags must do with.
check-lab-small: packages-lab
run-lab-small: programs
	@LAB_FOLDER="$${LAB_FOLDER:-$(abspath $(O))/lab}" LAB_MEM=512 LAB_TIMEOUT=$${LAB_TIMEOUT:-200} \
		$(RUN) --name lab-small --timeout 300 'tests/lab/run "XR_BUILD=$(abspath $(O)) exec tests/lab/small_guest.py"'

# On this machine's own device, as the user who calls; DEV has no default, since nobody's card is used unasked.
check-rdma: packages-rdma
	@test -n '$(DEV)' || { echo "check-rdma: say on which device, such as DEV=mlx5_0" >&2; exit 2; }
	+@$(BUILD) run-rdma

run-rdma: programs examples $(NUMA_BIN)
	@tests/lab/check '$(abspath $(O))' '$(abspath $(O))/log' '$(DEV)'

demo-rdma: packages-lab
	+@$(BUILD) programs
	@$(LAB)/run "exec mk/demo '$(abspath $(O))/bin/xr-perf' 5 10.77.0.1"

.PHONY: bench-rdma
bench-rdma: packages-lab
	+@$(BUILD) programs $(O)/tests/bench/idle
	@$(LAB)/run "export XR_BUILD='$(abspath $(O))'; tests/bench/idle --rdma --json \"\$$LAB_RESULTS/bench-idle.json\" && \
		exec tests/bench/verbs --json \"\$$LAB_RESULTS/bench-verbs.json\""
