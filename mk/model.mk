# Models: those that spin checks (tests/model/*.pml, run by tests/model/run), and the one of flow control, a C program
# that searches the states of two ends with the library's own arithmetic in them.

FLOW_TEST := $(O)/tests/model/flow_test
FLOW_SRC  := $(sort $(wildcard tests/model/*.c)) net/verbs/window.c net/verbs/credit.c
FLOW_OBJ  := $(FLOW_SRC:%.c=$(O)/obj/%.o)

tests: $(FLOW_TEST)

$(FLOW_TEST): $(FLOW_OBJ)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -o $@ $(FLOW_OBJ)

-include $(FLOW_OBJ:.o=.d)

.PHONY: run-model run-model-full
run-model: $(FLOW_TEST)
	@$(RUN) --name model --timeout 600 tests/model/run $(FLOW_TEST)

run-model-full: $(FLOW_TEST)
	@$(RUN) --name model-full --timeout 7200 '$(FLOW_TEST) --full'
