# Freestone: every target sets up what it needs, the first time it needs it.
#
#   make compare    compare every allocator of this machine on the default workload
#   make test       build and run every test
#   make help       the rest
#
# PYTHON=python3.13   the interpreter the virtual environment is made with
# ROUNDS=10           rounds of `make compare`; without it, as many as fit into its time budget
# RESULTS=folder      where `make compare` and `make bench` put their results
# SUITES="field"      what `make bench` measures
# ONLY="6 errno"      which hazards `make hazards` tries, by number or name; ALLOCATORS=freestone,glibc: under which allocators
# ONLY="double free"  which bugs `make misuses` tries: those with this text in "family: program arguments"
# KEEP=1              `make hazards` asks again only what has changed; PLANTED=1: under allocators with the very fault
# PAGE_BYTES=65536    pages of the emulated kernel of `make test-aarch64` and its like: 4096, 16384 or 65536

PYTHON  ?= python3
ROUNDS  ?=
BUDGET  ?= 130
RESULTS ?=
SUITES  ?= field apps
SOAK_SECONDS ?= 600
PAGE_BYTES   ?=
ONLY    ?=
ALLOCATORS ?=
KEEP    ?=
PLANTED ?=

VENV  := .venv
BIN   := $(VENV)/bin
BUILD := build

LOCK     := tools/constraints.txt
PIP      := $(BIN)/python -m pip --quiet --disable-pip-version-check
IN_PLACE := --no-build-isolation -C wheel.cmake=false -C editable.mode=inplace
PACKAGES := $(BIN)/python tools/system_packages.py
CONFORMANCE := PYTHONPATH=tools:tests/foreign $(BIN)/python -m conformance

# cmake and ninja are the system's where it has them, and wheels in the virtual environment where not.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help compare bench hazards misuses foreign fuzz test test-all test-long test-modes test-native test-python test-aarch64 test-riscv64 test-ppc64le model build lint format soak sanitize yielding doctor-check scale simulated-tables simulated-fleet place-transcripts readme-figure lock clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help:
	@echo 'make compare         compare every allocator of this machine on the default workload'
	@echo 'make bench           the suites $(SUITES) under every allocator: the scoreboard'
	@echo 'make test            build and run the tests'
	@echo 'make test-all        these and the long ones: what a CI runs'
	@echo 'make build           $(BUILD)/libfreestone.so, $(BUILD)/libfreestone.a and $(BIN)/freestone'
	@echo 'make wheel           the wheels, for glibc from 2.31 on and for musl; make sdist: the source, packed; test-wheel: tries them'
	@echo 'make crate           the Rust crate, packed; test-crate: tries it'
	@echo 'make lint            check style, types and the C'
	@echo 'make format          put Python and C into the house style'
	@echo 'make soak            each test that goes on by chance for SOAK_SECONDS ($(SOAK_SECONDS)); then foreign, whole'
	@echo 'make foreign         foreign programs under glibc and under libfreestone: whatever differs; ONLY="redis git"'
	@echo 'make sanitize        the tests of the allocator by part, under each sanitizer'
	@echo 'make simulate        the library played by chance, many threads in one: SEED=1 RUNS=200 STEPS=2000'
	@echo 'make simulate-planted   how soon the simulator finds each fault that is planted'
	@echo 'make model           the protocol between threads, gone through by spin, and faults planted in it'
	@echo 'make yielding        the same and more while other threads go first at any atomic operation; also for aarch64'
	@echo 'make test-aarch64    the tests of the allocator for aarch64, by an emulator; PAGE_BYTES=65536'
	@echo 'make test-riscv64    the same for riscv64; make test-ppc64le: for ppc64le, with pages of 64 KiB'
	@echo 'make hazards         what users of allocators were hurt by, under every allocator: docs/hazards.md; ONLY="6 errno": by number or name'
	@echo 'make misuses         programs of one bug each, under every allocator, who stops which and when: docs/misuses.md; ONLY="double free": with that text'
	@echo 'make scale           locks, lines and system calls at 64 threads, counted: docs/scale.md'
	@echo 'make test-modes      real programs under libfreestone hardened and sampled'
	@echo 'make test-places     comparisons at several places: a real Slurm and a real Dask, a worker lost in the middle'
	@echo 'make fuzz            sequences of calls against a model, by libFuzzer and AFL++, in every mode; SECONDS=60: all together'
	@echo 'make simulated-tables   how often whole tables are right, by simulation: docs/reference/statistics.md'
	@echo 'make simulated-fleet    what a report of 1,000 machines takes, by simulation: docs/guide/many-machines.md'
	@echo 'make place-transcripts  a worker lost in the middle of a real Slurm and a real Dask, as a terminal has it: docs/guide/many-machines.md'
	@echo 'make readme-figure   put a measurement into the README, with its pictures: RESULTS=folder'
	@echo 'make packages        what is installed, into dist: wheels, source, Debian packages, crate; each alone: make deb'
	@echo 'make test-packages   each of them installed and used, where there is neither clone nor compiler; make test-deb: those for C and C++'
	@echo 'make container       what an image with the library is built from; test-container: its two lines, tried'
	@echo 'make release         all of these for VERSION=1.2.0, tried, with what is in them and SHA256SUMS; not uploaded; DRY_RUN=1'
	@echo 'make lock            renew $(LOCK)'
	@echo 'make clean           remove what was built and set up; results stay'

# --- the commands ---------------------------------------------------------------------------------------------------

compare: build
	@$(PACKAGES) compare --tried $(VENV)/.tried-compare
	@$(BIN)/freestone compare --name json-sqlite \
	    $(if $(ROUNDS),--rounds $(ROUNDS),--time-budget $(BUDGET)) $(if $(RESULTS),--results $(RESULTS)) \
	    --env PYTHONMALLOC=malloc --env PYTHONHASHSEED=0 \
	    -- '$(CURDIR)/$(BIN)/python' -s -S '$(CURDIR)/workloads/json_sqlite.py'

bench: build
	@$(PACKAGES) compare bench --tried $(VENV)/.tried-bench
	@cmake -S . -B $(BUILD) --log-level=WARNING >/dev/null && $(MAKE) --no-print-directory build
	@$(BIN)/freestone bench $(SUITES) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(RESULTS),--results $(RESULTS))

# What is compiled waits for no package, and the packages for no compiler. Both halves of the tests always run, so that one
# report names everything that is broken, and at its end what took longest.
test: $(VENV)/.tools
	@$(PACKAGES) test --tried $(VENV)/.tried-test
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.test test-programs
	@rm -f $(BUILD)/tests-native.xml $(BUILD)/tests-python.xml; status=0; \
	$(MAKE) --no-print-directory test-native || status=1; \
	$(MAKE) --no-print-directory test-python || status=1; \
	$(BIN)/python tools/slowest_tests.py $(BUILD)/tests-native.xml $(BUILD)/tests-python.xml; \
	exit $$status

# What takes longest, and is seldom what breaks, is left to this one.
test-all:
	@status=0; \
	$(MAKE) --no-print-directory test || status=1; \
	$(MAKE) --no-print-directory test-long || status=1; \
	exit $$status

# --- set-up ---------------------------------------------------------------------------------------------------------

# An environment and a build folder know where they were made: in a tree that was moved or copied both are made anew.
ifneq ($(shell cat $(VENV)/.made 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.made
endif

$(VENV)/.made:
	@echo 'freestone: setting up $(VENV)'
	@rm -rf $(BUILD)
	@tools/make-venv $(PYTHON) $(VENV)
	@echo '$(CURDIR)' >$@

# The package itself is installed in place: Python sources are used where they are, and the native parts are put beside
# them by `make build`. A stamp that is older than what it was made from is made again; nothing else costs time.
$(VENV)/.tools: pyproject.toml $(LOCK) $(VENV)/.made
	@$(PIP) install -c $(LOCK) --upgrade pip
	@$(PIP) install -c $(LOCK) scikit-build-core \
	    $(shell command -v cmake >/dev/null 2>&1 || echo cmake) $(shell command -v ninja >/dev/null 2>&1 || echo ninja)
	@touch $@

$(VENV)/.run: $(VENV)/.tools
	@$(PIP) install -c $(LOCK) $(IN_PLACE) -e '.[figures,parquet]'
	@touch $@

# What the tests want is more than what is wanted to run.
$(VENV)/.test: $(VENV)/.tools
	@$(PIP) install -c $(LOCK) $(IN_PLACE) -e '.[test]'
	@touch $(VENV)/.run $@

# What packages are made with.
$(VENV)/.packages: $(VENV)/.tools
	@$(PIP) install -c $(LOCK) $(IN_PLACE) -e '.[packages]'
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	@$(PIP) install -c $(LOCK) $(IN_PLACE) -e '.[test,lint]'
	@touch $@

# --- build ----------------------------------------------------------------------------------------------------------

$(BUILD)/build.ninja: $(VENV)/.tools
	@tools/working-compiler
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING >/dev/null
	@touch $@

build: $(BUILD)/build.ninja $(VENV)/.run
	@cmake --build $(BUILD) --target parts -- --quiet
	@cmake --install $(BUILD) --prefix src >/dev/null

# --- tests ----------------------------------------------------------------------------------------------------------

# Configured each time: a package that has come since may bring tests.
.PHONY: test-programs
test-programs: $(BUILD)/build.ninja
	@cmake -S . -B $(BUILD) -DFREESTONE_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -- --quiet

# Many sleep most of the time: four at once keep two processors busy for two thirds of it.
test-native: build test-programs
	@ctest --test-dir $(BUILD) --output-on-failure --progress --timeout 300 -j 6 -LE '^(long|soak)$$' \
	    --output-junit '$(CURDIR)/$(BUILD)/tests-native.xml'

# One more than there are processors of the machine it is tuned for: some test always waits. What is compiled is kept.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 3 --dist loadgroup

test-python: build $(VENV)/.test
	@$(PYTEST) -m 'not long and not packages' --junit-xml=$(BUILD)/tests-python.xml

test-long: build test-programs $(VENV)/.test
	@status=0; \
	ctest --test-dir $(BUILD) --output-on-failure --progress --timeout 600 -j 6 -L '^long$$' || status=1; \
	$(PYTEST) -m 'long and not packages' || status=1; \
	exit $$status

soak: build
	@cmake -S . -B $(BUILD) -DFREESTONE_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -- --quiet
	@echo "freestone: $$(ctest --test-dir $(BUILD) -N -L soak | sed -n 's/^Total Tests: //p') tests, $(SOAK_SECONDS) seconds each"
	@FREESTONE_SOAK_SECONDS=$(SOAK_SECONDS) ctest --test-dir $(BUILD) --output-on-failure -L soak --timeout 0
	@$(MAKE) --no-print-directory foreign WHOLE=--whole

# ONLY="redis git": these, and only their packages are installed.
# SECONDS=10: how long a load that goes by time lasts. PAGE=docs/foreign-programs.md: where the table goes.
foreign: build
	@$(PACKAGES) foreign --tried $(VENV)/.tried-foreign $(if $(ONLY),--only $(ONLY))
	@$(CONFORMANCE) foreign $(if $(ONLY),--only '$(ONLY)') $(WHOLE) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PAGE),--page $(PAGE))

# Real programs that are right must not notice that they are watched.
test-modes: build
	@for options in harden=1 guard=1000 guard=20; do \
	    echo "freestone: real programs, FREESTONE_OPTIONS=$$options"; \
	    FREESTONE_TESTED_OPTIONS=$$options $(BIN)/pytest -q tests/programs || exit 1; done

# SECONDS=3600: in all. KEEP=--keep: what reaches more goes into the corpus.
fuzz: $(VENV)/.run
	@$(PACKAGES) fuzz --tried $(VENV)/.tried-fuzz
	@$(BIN)/python tools/fuzz.py $(if $(SECONDS),--seconds $(SECONDS)) $(KEEP)

# Leaves what it finds, shrunk, in $(BUILD): allocator/tests/simulator/scripts is where such scripts are kept.
SEED  ?= 1
RUNS  ?= 200
STEPS ?= 2000
SIMULATOR := $(BUILD)/allocator/tests/simulator/simulator

$(SIMULATOR): build
	@cmake -S . -B $(BUILD) -DFREESTONE_TESTS=ON >/dev/null
	@cmake --build $(BUILD) --target simulator -- --quiet

.PHONY: $(SIMULATOR)

simulate: $(SIMULATOR)
	@$(SIMULATOR) --seed $(SEED) --runs $(RUNS) --steps $(STEPS) --keep $(BUILD)

simulate-planted: $(SIMULATOR)
	@$(SIMULATOR) --campaigns 3 --seed $(SEED) --runs 50

sanitize: $(VENV)/.run
	@for kind in address undefined thread; do \
	    cmake -S . -B $(BUILD)/$$kind -G Ninja -DFREESTONE_SANITIZE=$$kind -DFREESTONE_TESTS=ON --log-level=WARNING >/dev/null && \
	    cmake --build $(BUILD)/$$kind -- --quiet && \
	    ctest --test-dir $(BUILD)/$$kind --output-on-failure --timeout 300 || exit 1; \
	done

# Not what is about the calls that are made (a yield is one), nor about how soon the keeper has done.
YIELDING := ^(unit|threads|traces|idle|lifecycle|faults)\.
NOT_YIELDING := lifecycle\.(sandbox|late_filter)|faults\.(confine|own_calls|no_purge)

# Other threads go first at any atomic operation, now and then: as the library is, under the thread sanitizer, and for aarch64.
yielding: $(VENV)/.run
	@cmake -S . -B $(BUILD)/yielding -G Ninja -DFREESTONE_YIELDS=ON -DFREESTONE_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build $(BUILD)/yielding -- --quiet
	@ctest --test-dir $(BUILD)/yielding --output-on-failure --progress --timeout 600 -j 2 -R '$(YIELDING)' -E '$(NOT_YIELDING)'
	@cmake -S . -B $(BUILD)/yielding-thread -G Ninja -DFREESTONE_YIELDS=ON -DFREESTONE_SANITIZE=thread -DFREESTONE_TESTS=ON \
	    --log-level=WARNING >/dev/null
	@cmake --build $(BUILD)/yielding-thread -- --quiet
	@ctest --test-dir $(BUILD)/yielding-thread --output-on-failure --progress --timeout 600 -j 2
	@$(PACKAGES) aarch64 --tried $(VENV)/.tried-aarch64
	@cmake -S . -B $(BUILD)/yielding-aarch64 -G Ninja --toolchain cmake/aarch64.cmake -DFREESTONE_YIELDS=ON \
	    -DFREESTONE_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build $(BUILD)/yielding-aarch64 -- --quiet
	@ctest --test-dir $(BUILD)/yielding-aarch64 --output-on-failure --progress --timeout 600 -j 2 -R '$(EMULATED)'

# What an emulator can show. It is no kernel: it counts its own memory as the program's, has no limits and no filters (without which a
# static program keeps no thread that returns memory), mixes up a move of pages that leaves the old mapping there, and what a program
# starts is for this machine again.
EMULATED := ^(abi\.(every_free|operators|library_shape)|rules\.(zero_sizes|errno_kept|alignment|usable_size|realloc_contents|calloc_zero)|traces\.(alone|by_4)\.|threads\.many_at_once|idle\.dirty_and_zero|lifecycle\.fork_under_load|unit\.(bits|text|size_class|magazine|options|lock)$$)

# Most kernels of ppc64le have pages of 64 KiB.
test-aarch64 test-riscv64: PAGES := $(or $(PAGE_BYTES),4096)
test-ppc64le: PAGES := $(or $(PAGE_BYTES),65536)

test-aarch64 test-riscv64 test-ppc64le: test-%: $(VENV)/.test
	@$(PACKAGES) $* --required --tried $(VENV)/.tried-$*
	@cmake -S . -B $(BUILD)/$*-$(PAGES) -G Ninja --no-warn-unused-cli --toolchain cmake/$*.cmake -DFREESTONE_PAGE_BYTES=$(PAGES) \
	    -DFREESTONE_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build $(BUILD)/$*-$(PAGES) -- --quiet
	@ctest --test-dir $(BUILD)/$*-$(PAGES) --output-on-failure --progress --timeout 600 -j 2 -R '$(EMULATED)'
	@FREESTONE_MACHINE=$* FREESTONE_BUILD=$(BUILD)/$*-$(PAGES) $(BIN)/python -m pytest -q tests/emulated/test_lab_parts.py

# PAGE=docs/results/models.md: the table goes there as well.
model: $(VENV)/.made
	@$(PACKAGES) model --tried $(VENV)/.tried-model
	@$(BIN)/python tools/check_models.py $(if $(PAGE),--page $(PAGE))

# The page is written by a run of everything. It sets the machine's policy of huge pages, and puts it back.
hazards: build
	@$(PACKAGES) compare bench --tried $(VENV)/.tried-bench
	@$(CONFORMANCE) hazards $(if $(ONLY),--only '$(ONLY)') $(if $(ALLOCATORS),--allocators '$(ALLOCATORS)') \
	    $(if $(KEEP),--keep) $(if $(PLANTED),--planted) $(if $(ONLY)$(ALLOCATORS)$(PLANTED),,--page docs/hazards.md)

# The page is written by a run of everything.
misuses: build
	@$(PACKAGES) compare bench --tried $(VENV)/.tried-bench
	@$(CONFORMANCE) misuses $(if $(ONLY),--only '$(ONLY)') $(if $(ALLOCATORS),--allocators '$(ALLOCATORS)') \
	    $(if $(ONLY)$(ALLOCATORS),,--page docs/misuses.md)

# What the doctor says of every patient, 20 times each, and whether its cures hold. Some four hours; goes on where it was interrupted, also on another day.
doctor-check: build
	@$(BIN)/python tools/doctor_check.py --times $(or $(TIMES),20) --cures $(or $(CURES),2) --page docs/doctor-check.md

# By counting, since no machine here has 64 CPUs. QUICK=1: little of everything, no page.
scale: $(VENV)/.run
	@$(PACKAGES) test --tried $(VENV)/.tried-test
	@cmake -S . -B $(BUILD)/counting -G Ninja -DFREESTONE_COUNTING=ON --log-level=WARNING >/dev/null
	@cmake --build $(BUILD)/counting --target freestone -- --quiet
	@PYTHONPATH=tools $(BIN)/python -m scale $(if $(QUICK),--quick,--page docs/scale.md)

# How often whole tables accuse twins and find what is planted. Half an hour; the page is written by all of it.
simulated-tables: $(VENV)/.made
	@PYTHONPATH=tools:tests/plugins $(BIN)/python -m simulated_tables --seed $(SEED) $(if $(TABLES),--tables $(TABLES)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(TABLES)$(ROUNDS),,--page docs/reference/statistics.md)

# What reports of 10, 100 and 1,000 made-up machines take. Five minutes, and 250 MB below TMPDIR.
simulated-fleet: $(VENV)/.made
	@PYTHONPATH=tools $(BIN)/python -m simulated_fleet --seed $(SEED) $(if $(MACHINES),--machines $(MACHINES),--page docs/guide/many-machines.md)

# --- wheel and crate ------------------------------------------------------------------------------------------------

# A wheel for each C library that it can be built for here, each with the tag that it earns; tools/wheels says which, and why not others.
.PHONY: wheel sdist crate test-wheel test-crate
wheel: $(VENV)/.packages
	@$(PACKAGES) wheel --tried $(VENV)/.tried-wheel
	@PYTHONPATH=tools $(BIN)/python -m wheels --dist dist --work $(BUILD)/wheels

sdist: $(VENV)/.tools
	@rm -f dist/freestone-*.tar.gz
	@$(BIN)/python -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")' >/dev/null
	@ls -l dist/freestone-*.tar.gz | awk '{ print $$9 "  " $$5 " bytes" }'

# The root of an old release is made first: compiling its Python may take longer than a test may. Without one, tests say what is missing.
test-wheel: wheel sdist $(VENV)/.test
	@PYTHONPATH=tools $(BIN)/python -m wheels.old_root $(BUILD)/wheels/bullseye.tar >/dev/null 2>&1 || true
	@$(BIN)/python -m pytest -q -n 2 -m packages tests/packaging/test_wheels.py

# The crate is the folder packaging/crate with the allocator's sources packed into it.
CRATE   := $(BUILD)/crate
CRATE_VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/freestone/__init__.py)

crate:
	@command -v cargo >/dev/null || { echo 'freestone: the crate is packed by cargo, which is not here: install Rust' >&2; exit 1; }
	@rm -rf $(CRATE) dist/freestone-$(CRATE_VERSION).crate && mkdir -p $(CRATE)/native dist
	@cp -R packaging/crate/. LICENSE $(CRATE) && cp -R allocator/src allocator/include $(CRATE)/native
	@CARGO_TARGET_DIR=$(BUILD)/crate-target cargo package --quiet --allow-dirty --no-verify --manifest-path $(CRATE)/Cargo.toml
	@cp $(BUILD)/crate-target/package/freestone-$(CRATE_VERSION).crate dist
	@ls -l dist/freestone-$(CRATE_VERSION).crate | awk '{ print $$9 "  " $$5 " bytes" }'

test-crate: crate build $(VENV)/.test
	@$(BIN)/python -m pytest -q -m packages tests/packaging/test_crate.py

# --- style ----------------------------------------------------------------------------------------------------------

C_FILES  = $(shell find allocator probes workloads/native workloads/apps workloads/patients tests -name '*.[ch]')
CC_FILES = $(shell find allocator probes tests workloads -name '*.cpp')

lint: build $(VENV)/.lint
	@$(PACKAGES) lint --tried $(VENV)/.tried-lint
	@tools/lint $(BUILD) $(C_FILES) $(CC_FILES)

format: $(VENV)/.lint
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/clang-format -i $(C_FILES) $(CC_FILES)

# --- packages -------------------------------------------------------------------------------------------------------

.PHONY: packages deb test-packages test-deb

packages: wheel sdist deb crate

deb: $(VENV)/.tools
	@$(PACKAGES) packages --tried $(VENV)/.tried-packages
	@$(BIN)/python tools/build_deb.py

# What an image with the library is built from.
.PHONY: container test-container
container: wheel
	@$(BIN)/python tools/container_context.py

test-container: container $(VENV)/.test
	@$(BIN)/python -m pytest -q tests/packaging/test_container.py

test-packages: test-wheel test-crate test-deb test-container

# What C and C++ users install: what compilers, CMake, pkg-config and Meson are told, and the Debian packages.
test-deb: build deb $(VENV)/.test
	@$(BIN)/python -m pytest -q tests/packaging/test_consumers.py tests/packaging/test_debian.py tests/packaging/test_debian_root.py

# --- release --------------------------------------------------------------------------------------------------------

# VERSION=1.2.0: everything but the upload. SKIP_TESTS=1: the packages are not tried; DRY_RUN=1: it says what it would do.
.PHONY: release bill-of-materials
release: $(VENV)/.packages
	@test -n '$(VERSION)' || { echo 'freestone: say which version: make release VERSION=1.2.0' >&2; exit 2; }
	@PYTHONPATH=tools $(BIN)/python -m release '$(VERSION)' $(if $(SKIP_TESTS),--skip-tests) $(if $(DRY_RUN),--dry-run)

# What is in each package of dist, and whose: CycloneDX.
bill-of-materials: $(VENV)/.packages
	@$(BIN)/python tools/bill_of_materials.py

# --- many machines --------------------------------------------------------------------------------------------------

# Real clusters on this machine, in whose middle a worker is lost.
.PHONY: test-places
test-places: build $(VENV)/.test
	@$(PACKAGES) places --tried $(VENV)/.tried-places
	@$(BIN)/python -m pytest -q tests/places/test_dask.py tests/places/test_slurm.py

# What a terminal shows while a worker is lost and comes back, and the report of it. Ten minutes.
place-transcripts: build $(VENV)/.test
	@$(PACKAGES) places --tried $(VENV)/.tried-places
	@PYTHONPATH=tools $(BIN)/python tools/place_transcripts.py --page docs/guide/many-machines.md --picture docs/images/many-machines.png

# --- the rest -------------------------------------------------------------------------------------------------------

readme-figure: build
	@test -n '$(RESULTS)' || { echo 'freestone: say which measurement: make readme-figure RESULTS=results/FOLDER' >&2; exit 2; }
	@$(BIN)/python tools/readme_figure.py '$(RESULTS)'

# Into an environment of its own, so that only what is declared is locked.
lock:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && tools/make-venv $(PYTHON) "$$folder/venv" && \
	"$$folder/venv/bin/python" -m pip --quiet install --upgrade pip scikit-build-core cmake ninja && \
	"$$folder/venv/bin/python" -m pip --quiet install --no-build-isolation -C wheel.cmake=false '.[test,lint,packages]' && \
	"$$folder/venv/bin/python" -m pip freeze --all --exclude freestone --exclude setuptools --exclude wheel >"$$folder/frozen" && \
	{ echo '# Versions Freestone was tested with; renewed by `make lock`. Lower bounds are in pyproject.toml.'; \
	  cat "$$folder/frozen"; } >$(LOCK)

clean:
	@rm -rf $(BUILD) build-wheel dist $(VENV) src/freestone/_native
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools workloads -name __pycache__ -type d -prune -exec rm -rf {} +
