# The core without Ruby: a static library, its unit tests and its fuzz targets.
#
#   make -f ext/rondo/core.mk lib|test|test-threaded|replay|fuzz [CC=gcc|clang] [SANITIZE=address,undefined|thread]
#        [POLLER=kqueue]    the poller of macOS and the BSDs; on Linux over a stand-in of the tests
#        [PORTABLE=1]       what other systems get in place of Linux's calls; names that they lack are errors
#
# Run from the root. Everything built goes to build/core/<compiler>[-<sanitizers>]/, so variants
# stand side by side. Warnings are errors here; those of the binding are in tools/check_binding.

ifeq ($(origin CC),default)
CC := gcc
endif
# Before the first of hundreds of errors.
ifeq ($(shell echo __SIZEOF_POINTER__ | $(CC) -E -P - 2>/dev/null),4)
$(error Rondo needs a system with 64 bits)
endif
SANITIZE ?=
OPTIMIZE ?= $(if $(SANITIZE),-O1,-O2)
ROOT := $(patsubst %/ext/rondo/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

comma := ,
variant := $(notdir $(firstword $(CC)))$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(addprefix -,$(POLLER))$(if $(PORTABLE),-portable)
OUT ?= $(ROOT)/build/core/$(variant)

folders := base system loop transport tls listen pubsub cluster http request files endpoint messaging protocol http2 server control load
core := $(ROOT)/ext/rondo
# `TLS=` leaves TLS out, like `--without-tls` in extconf.rb.
TLS ?= 1
ifeq ($(TLS),)
folders := $(filter-out tls,$(folders))
endif
# `HTTP2=` leaves HTTP/2 out, like `--without-http2`.
HTTP2 ?= 1
ifeq ($(HTTP2),)
folders := $(filter-out http2,$(folders))
endif
sources := $(sort $(foreach folder,$(folders),$(wildcard $(core)/$(folder)/*.c)))
objects := $(patsubst $(core)/%.c,$(OUT)/%.o,$(sources))
library := $(OUT)/librondo.a
fuzz_objects := $(patsubst $(core)/%.c,$(OUT)/counted/%.o,$(sources))

test_sources := $(sort $(wildcard $(ROOT)/test/core/*/test_*.c))
ifeq ($(TLS),)
test_sources := $(filter-out $(ROOT)/test/core/tls/%,$(test_sources))
endif
ifeq ($(HTTP2),)
test_sources := $(filter-out $(ROOT)/test/core/http2/%,$(test_sources))
endif
# For tools/try_platform: names like loop/test_loop.
ifneq ($(strip $(ONLY)),)
test_sources := $(filter $(foreach one,$(ONLY),$(ROOT)/test/core/$(one).c),$(test_sources))
endif
test_sources := $(filter-out $(foreach one,$(LEFT_OUT),$(ROOT)/test/core/$(one).c),$(test_sources))
# What several tests share and is more than a header.
test_shared := $(sort $(wildcard $(ROOT)/test/core/*.c))
test_shared_objects := $(patsubst $(ROOT)/test/core/%.c,$(OUT)/shared/%.o,$(test_shared))
test_programs := $(patsubst $(ROOT)/test/core/%.c,$(OUT)/test/%,$(test_sources))
# Those in which a second thread is started: TSan can find something there.
threaded_programs := $(filter $(addprefix $(OUT)/test/,$(shell cat $(ROOT)/test/core/threaded.txt)),$(test_programs))

fuzz_sources := $(shell grep -l LLVMFuzzerTestOneInput $(ROOT)/test/fuzz/*.c 2>/dev/null | sort)
ifeq ($(TLS),)
fuzz_sources := $(filter-out $(ROOT)/test/fuzz/tls_%,$(fuzz_sources))
endif
ifeq ($(HTTP2),)
fuzz_sources := $(filter-out $(ROOT)/test/fuzz/http2%,$(fuzz_sources))
endif
fuzz_targets := $(basename $(notdir $(fuzz_sources)))
fuzz_programs := $(addprefix $(OUT)/fuzz/,$(fuzz_targets))
replay_programs := $(addprefix $(OUT)/replay/,$(fuzz_targets))
# Shared by all targets, so no target itself (the replay's main among them).
fuzz_shared := $(filter-out $(fuzz_sources) $(ROOT)/test/fuzz/tls_%,$(wildcard $(ROOT)/test/fuzz/*.c))

CPPFLAGS += -D_GNU_SOURCE -I$(core) -I$(ROOT)/test/core -I$(ROOT)/test/fuzz
# Sanitizers need lines in their reports, not types: an eighth less to compile.
CFLAGS += -std=c11 -fno-strict-aliasing $(OPTIMIZE) $(if $(SANITIZE),-g1,-g) -fno-omit-frame-pointer -Wall -Wextra -Wconversion -Werror
LDLIBS += -lpthread -lz
ifeq ($(TLS),)
CPPFLAGS += -DRD_WITHOUT_TLS
else
LDLIBS += -lssl -lcrypto
endif
ifeq ($(HTTP2),)
CPPFLAGS += -DRD_WITHOUT_HTTP2
else
LDLIBS += -lnghttp2
endif
# Here kqueue(2) is a small one over epoll, which only the tests are linked with.
ifeq ($(POLLER),kqueue)
stand_in := $(OUT)/kqueue.o
CPPFLAGS += -DRD_WITH_KQUEUE -I$(ROOT)/test/support/kqueue
endif
ifneq ($(PORTABLE),)
CPPFLAGS += -DRD_PORTABLE
library_flags := -include $(ROOT)/test/support/only_portable.h
endif
ifneq ($(SANITIZE),)
CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
endif
# Hundreds of programs are linked with the whole core: gold needs a quarter of the time.
ifneq ($(shell command -v ld.gold || true),)
LDFLAGS += -fuse-ld=gold
endif

.PHONY: lib tests test test-threaded replays replay fuzz clean list-fuzz
.DELETE_ON_ERROR:

lib: $(library)

$(library): $(objects)
	@rm -f $@
	@$(AR) rcs $@ $(objects)

$(OUT)/%.o: $(core)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(library_flags) $(CFLAGS) -MMD -MP -c $< -o $@

tests: $(test_programs)

$(OUT)/shared/%.o: $(ROOT)/test/core/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/kqueue.o: $(ROOT)/test/support/kqueue/kqueue.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/test/%: $(ROOT)/test/core/%.c $(test_shared_objects) $(library) $(stand_in)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $@.d $< $(test_shared_objects) $(library) $(stand_in) $(LDFLAGS) \
	    $(LDLIBS) -o $@

# Runs all of them even if one fails, then says how many tests passed in all.
test: tests
	@$(ROOT)/tools/run_core_tests $(test_programs)

test-threaded: $(threaded_programs)
	@$(ROOT)/tools/run_core_tests $(threaded_programs)

fuzz: $(fuzz_programs)

# The core once more, with the coverage counters the fuzzer steers by.
$(OUT)/counted/%.o: $(core)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

# A library, so that a target may bring its own clock.
$(OUT)/counted/librondo.a: $(fuzz_objects)
	@rm -f $@
	@$(AR) rcs $@ $(fuzz_objects)

$(OUT)/fuzz/%: $(ROOT)/test/fuzz/%.c $(OUT)/counted/librondo.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer -MMD -MP -MF $@.d $< $(OUT)/counted/librondo.a \
	    $(LDFLAGS) $(LDLIBS) -o $@

replays: $(replay_programs)

$(OUT)/replay/%: $(ROOT)/test/fuzz/%.c $(fuzz_shared) $(library)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DRD_FUZZ_REPLAY -MMD -MP -MF $@.d $< $(fuzz_shared) $(library) \
	    $(LDFLAGS) $(LDLIBS) -o $@

# Every input of the corpora once, without the fuzzer (any compiler can do that).
replay: replays
	@$(ROOT)/tools/run_fuzz_corpora $(replay_programs)

list-fuzz:
	@echo $(fuzz_targets)

clean:
	rm -rf $(OUT)

-include $(objects:.o=.d) $(test_shared_objects:.o=.d) $(fuzz_objects:.o=.d) $(addsuffix .d,$(test_programs) $(fuzz_programs) $(replay_programs))
