# The lab: virtual machines with soft-RoCE (tests/lab/run says what it takes).
#
#   make lab RUN='ibv_devinfo'     make lab2 HOST1='ibv_rc_pingpong -g 1' HOST2='ibv_rc_pingpong -g 1 10.77.0.1'

.PHONY: lab lab2
lab:
	@mk/packages install lab
	@LAB_FOLDER=$(O)/lab tests/lab/run '$(subst ','\'',$(RUN))'

lab2:
	@mk/packages install lab
	@LAB_FOLDER=$(O)/lab tests/lab/run2 '$(subst ','\'',$(HOST1))' '$(subst ','\'',$(HOST2))'
