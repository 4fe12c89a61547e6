# One command for each thing a newcomer wants; `make help` lists them.
# CMake does the work (CMakePresets.json); this file installs what is missing and calls it.

PRESET ?= release
PREFIX ?= /usr/local
BUILD := build/$(PRESET)

.DEFAULT_GOAL := all
.PHONY: all setup build test parity bench demo install clean format lint asan tsan clang help
.DELETE_ON_ERROR:

all: build  ## install missing packages and build everything (the tool: build/release/fenestra)

setup:  ## install the Debian packages that are missing
	@scripts/install-packages

# Ninja itself re-runs CMake when a CMake file or the operator list changes.
$(BUILD)/build.ninja: CMakePresets.json | setup
	cmake --preset $(PRESET)
	@touch $@

build: setup $(BUILD)/build.ninja
	cmake --build --preset $(PRESET)

test: build  ## build and run every test
	ctest --preset $(PRESET)

demo: setup $(BUILD)/build.ninja  ## train a small network on handwritten digits
	cmake --build --preset $(PRESET) --target example_digits
	$(BUILD)/examples/digits data/digits $(BUILD)/demo

parity:  ## compare every operator with torch on 8,000 random problems
	@scripts/install-packages peers
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target parity_cases
	/usr/bin/python3 tests/parity/parity.py $(BUILD)/parity_cases

bench:  ## time against oneDNN and torch, tens of minutes; QUICK=1: a subset in two
	@scripts/install-packages peers
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target fenestra_bench
	$(BUILD)/fenestra_bench $(if $(QUICK),--quick) --json $(BUILD)/bench.json

install: build  ## install into PREFIX (/usr/local), below DESTDIR if given
	cmake --install $(BUILD) --prefix "$(PREFIX)"

asan:  ## the specification's tests under the address and undefined-behaviour sanitizers
	@scripts/install-packages
	cmake --preset asan-ubsan
	cmake --build --preset asan-ubsan --target spec_tests
	ctest --preset asan-ubsan -L '^spec$$'

tsan:  ## calls from several threads at once under the thread sanitizer
	@scripts/install-packages
	cmake --preset tsan
	cmake --build --preset tsan --target threads_tests
	ctest --preset tsan -L '^threads$$'

clang:  ## build the library and the tool with the other compiler
	@scripts/install-packages clang
	cmake --preset clang
	cmake --build --preset clang --target fenestra_library fenestra_tool

format: setup  ## lay out every C++ file as .clang-format says
	scripts/format

lint:  ## static analysis of the library and the tool
	@scripts/install-packages lint
	@$(MAKE) --no-print-directory build
	scripts/lint $(BUILD)

clean:  ## remove everything that was built
	rm -rf build

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
