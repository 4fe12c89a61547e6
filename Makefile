# One command for each thing a newcomer wants; `make help` lists them.
# CMake does the work (CMakePresets.json); this file installs what is missing and calls it.

PRESET ?= release
PREFIX ?= /usr/local
BUILD := build/$(PRESET)
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := all
.PHONY: all setup build test parity bench bench-build demo install clean format lint mutants asan asan-quick \
	tsan tsan-quick fuzz fresh clang help
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
	ctest --preset $(PRESET) $(CTEST_FLAGS)

demo: setup $(BUILD)/build.ninja  ## train a small network on handwritten digits, and see it
	cmake --build --preset $(PRESET) --target fenestra_tool
	$(BUILD)/fenestra train lenet --data digits --width 2 --patience 10 --output $(BUILD)/demo --force --show 10 --gradcheck

parity:  ## compare every operator with torch on 8,000 random problems, and Python's functions
	@scripts/install-packages peers
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target parity_cases training_cases fenestra_python_package
	/usr/bin/python3 tests/parity/parity.py $(BUILD)/parity_cases
	/usr/bin/python3 tests/parity/training.py $(BUILD)/training_cases
	ctest --preset $(PRESET) -R '^python\.(torch|overhead)$$'

bench: bench-build  ## time against oneDNN, torch and XNNPACK, 15 minutes; QUICK=1: a subset in two
	$(BUILD)/fenestra_bench $(if $(QUICK),--quick) --python $(BUILD)/python --json $(BUILD)/bench.json \
		--page $(BUILD)/bench.html

bench-build:  # the bench alone, not run
	@scripts/install-packages peers
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target fenestra_bench

install: build  ## install into PREFIX (/usr/local), below DESTDIR if given
	cmake --install $(BUILD) --prefix "$(PREFIX)"

# With the fuzzers' build, which watches the same things: one library to compile for all three.
asan:  ## every test under the address and undefined-behaviour sanitizers
	@scripts/install-packages fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz
	ctest --preset fuzz $(CTEST_FLAGS)

# Examples are programs of strangers: they see only what the shared library shows, by the other compiler.
asan-quick:  ## the same for kernels, files, Python and the examples only
	@scripts/install-packages fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz --target kernels_tests io_tests fenestra_python_package examples
	ctest --preset fuzz -L '^(kernels|io|python|examples)$$'

tsan:  ## everything that uses threads under the thread sanitizer
	@scripts/install-packages
	cmake --preset tsan
	cmake --build --preset tsan --target threads_tests io_tests data_tests kernels_tests kernel_laws_tests \
		ops_tests graph_tests nn_tests training_tests faults_tests
	ctest --preset tsan -L '^(threads|io|data|kernels|kernel_laws|ops|graph|nn|training|faults)$$'

tsan-quick:  ## the same for calls from several threads at once only
	@scripts/install-packages
	cmake --preset tsan
	cmake --build --preset tsan --target threads_tests
	ctest --preset tsan -L '^threads$$'

fuzz:  ## every fuzzer for a minute; FUZZ_SECONDS=20: shorter
	@scripts/install-packages fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz --target fuzzers
	scripts/fuzz build/fuzz $(FUZZ_SECONDS)

fresh:  ## make demo and make test in an empty Debian, as root
	scripts/fresh

clang:  ## build the library and the tool with the other compiler
	@scripts/install-packages clang
	cmake --preset clang
	cmake --build --preset clang --target fenestra_library fenestra_tool

mutants: setup  ## break kernels one line at a time: the laws must notice each
	scripts/mutants --jobs 2

format: setup  ## lay out every C++ file as .clang-format says
	scripts/format

lint:  ## static analysis of the library and the tool
	@scripts/install-packages lint
	@$(MAKE) --no-print-directory build
	scripts/lint $(BUILD)

clean:  ## remove everything that was built
	rm -rf build

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
