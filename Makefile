# Freestone: every target sets up what it needs, the first time it needs it. The logic is in tools.

PYTHON  ?= python3
BUDGET  ?= 130
SUITES  ?= field apps
MACHINE ?= aarch64
SEED    ?= 1
RUNS    ?= 200
STEPS   ?= 2000
SOAK_SECONDS ?= 600

BIN      := .venv/bin
PACKAGES  = $(BIN)/python tools/system_packages.py --tried .venv/.tried-$@
TOOL     := PYTHONPATH=tools:tests/plugins:tests/foreign $(BIN)/python -m
OPTION    = $(if $($1),--$2 '$($1)')
RESULT    = $(call OPTION,ROUNDS,rounds) $(call OPTION,RESULTS,results)
# One more than there are processors of the machine it is tuned for: some test always waits.
PYTEST   := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 3 --dist loadgroup

# cmake and ninja are the system's where it has them, and wheels in the virtual environment where not.
export PATH := $(CURDIR)/$(BIN):$(PATH)
.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*/\1/p' Makefile)

help:
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do \
	    printf 'make %-18s %s\n' "$$name" "$$what"; done

set-up-tools set-up-run set-up-test set-up-packages set-up-lint:
	@PYTHON='$(PYTHON)' tools/environment $(@:set-up-%=%)

compare: build ## compare every allocator of this machine on the default workload; ROUNDS=20 RESULTS=folder
	@$(PACKAGES) compare
	@$(BIN)/freestone compare --name json-sqlite $(if $(ROUNDS),,--time-budget $(BUDGET)) $(RESULT) --env PYTHONMALLOC=malloc \
	    --env PYTHONHASHSEED=0 -- '$(CURDIR)/$(BIN)/python' -s -S '$(CURDIR)/workloads/json_sqlite.py'
bench: build ## the suites under every allocator: the scoreboard; SUITES="field apps" ROUNDS=10 RESULTS=folder
	@$(PACKAGES) compare bench && cmake -S . -B build --log-level=WARNING >/dev/null && tools/native parts
	@$(BIN)/freestone bench $(SUITES) $(RESULT)
build: set-up-run ## build/libfreestone.so, build/libfreestone.a and .venv/bin/freestone
	@tools/native parts

# What is compiled waits for no package, and the packages for no compiler. Both halves of the tests always run.
test: set-up-tools ## build and run the tests, without the long ones; names the slowest
	@$(PACKAGES) test
	@$(MAKE) --no-print-directory -j 2 set-up-test test-programs
	@$(MAKE) --no-print-directory -k test-native test-python
test-all: ## these and the long ones: what a CI runs
	@$(MAKE) --no-print-directory -k test test-long
test-long: build test-programs set-up-test ## the long ones alone
	@status=0; tools/native long || status=1; $(PYTEST) -m 'long and not packages' || status=1; exit $$status
test-native: build test-programs ## the half of the allocator
	@tools/native test
test-python: build set-up-test ## the half of the lab
	@$(PYTEST) -m 'not long and not packages' --durations=10
test-programs: set-up-tools
	@tools/native programs
test-emulated: set-up-test ## the tests of the allocator for MACHINE=aarch64, riscv64 or ppc64le; PAGE_BYTES=65536
	@$(BIN)/python tools/system_packages.py $(MACHINE) --required --tried .venv/.tried-$(MACHINE)
	@MACHINE='$(MACHINE)' PAGE_BYTES='$(PAGE_BYTES)' tools/native emulated
test-modes: build set-up-test ## real programs under libfreestone hardened and sampled, which must not notice
	@for options in harden=1 guard=1000 guard=20; do echo "freestone: real programs, FREESTONE_OPTIONS=$$options"; \
	    FREESTONE_TESTED_OPTIONS=$$options $(BIN)/pytest -q tests/programs || exit 1; done
test-places: build set-up-test ## comparisons at several places: a real Slurm and a real Dask, a worker lost in the middle
	@$(PACKAGES) places && $(BIN)/python -m pytest -q tests/places/test_dask.py tests/places/test_slurm.py
lint: build set-up-lint ## check style, types, the C and generated pages
	@$(PACKAGES) lint && tools/lint
format: set-up-lint ## put Python and C into the house style
	@tools/lint --fix

sanitize: set-up-run ## the tests of the allocator by part, under each sanitizer
	@tools/native sanitize
yielding: set-up-run ## the same and more while other threads go first at any atomic operation; also for aarch64
	@$(PACKAGES) aarch64 && tools/native yielding
soak: build ## each test that goes on by chance for SOAK_SECONDS=600; then foreign, whole
	@FREESTONE_SOAK_SECONDS=$(SOAK_SECONDS) tools/native soak && $(TOOL) conformance foreign --whole
fuzz: set-up-run ## sequences of calls against a model, by libFuzzer and AFL++, in every mode; SECONDS=60 KEEP=--keep
	@$(PACKAGES) fuzz && $(BIN)/python allocator/tests/fuzz/fuzz.py $(call OPTION,SECONDS,seconds) $(KEEP)
simulate: build ## the library played by chance, many threads in one; SEED=1 RUNS=200 STEPS=2000; PLANTED=1: planted faults
	@tools/native simulate --seed $(SEED) $(if $(PLANTED),--campaigns 3 --runs 50,--runs $(RUNS) --steps $(STEPS) --keep build)
model: set-up-tools ## the protocol between threads, gone through by spin, and faults planted in it; PAGE=file
	@$(PACKAGES) model && $(BIN)/python allocator/model/check_models.py $(call OPTION,PAGE,page)

# Pages are written by a run of everything.
hazards: build ## what users of allocators were hurt by: docs/hazards.md; ONLY="6 errno" ALLOCATORS=a,b KEEP=1 PLANTED=1
misuses: build ## programs of one bug each, who stops which and when: docs/misuses.md; ONLY="double free" ALLOCATORS=a,b
hazards misuses:
	@$(PACKAGES) compare bench && $(TOOL) conformance $@ $(call OPTION,ONLY,only) $(call OPTION,ALLOCATORS,allocators) \
	    $(if $(KEEP),--keep) $(if $(PLANTED),--planted) $(if $(ONLY)$(ALLOCATORS)$(PLANTED),,--page docs/$@.md)
foreign: build ## foreign programs under glibc and under libfreestone; ONLY="redis git" SECONDS=10 PAGE=file
	@$(PACKAGES) foreign $(if $(ONLY),--only $(ONLY))
	@$(TOOL) conformance foreign $(call OPTION,ONLY,only) $(call OPTION,SECONDS,seconds) $(call OPTION,PAGE,page)
scale: set-up-run ## locks, lines and system calls at 64 threads, counted: docs/scale.md; QUICK=1
	@$(PACKAGES) test && tools/native counting && $(TOOL) scale $(if $(QUICK),--quick,--page docs/scale.md)
doctor-check: build ## the doctor's word on every patient, some four hours: docs/doctor-check.md; TIMES=20 CURES=2
	@PYTHONPATH=tests/plugins $(BIN)/python workloads/patients/doctor_check.py --times $(or $(TIMES),20) --cures $(or $(CURES),2) --page docs/doctor-check.md
simulated-tables: set-up-test ## how often whole tables are right: docs/reference/statistics.md; TABLES=200 ROUNDS="4 5 10"
	@$(TOOL) simulated_tables --seed $(SEED) $(call OPTION,TABLES,tables) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(TABLES)$(ROUNDS),,--page docs/reference/statistics.md)
readme-figure: build ## put a measurement into the README, with its pictures; RESULTS=folder
	@$(BIN)/python tools/readme_figure.py '$(RESULTS)'

packages: wheel sdist deb crate container ## these five, into dist: for pip, APT and cargo; each alone: make deb
container: wheel
wheel sdist deb crate container: set-up-packages
	@case $@ in wheel) $(PACKAGES) wheel ;; deb) $(PACKAGES) packages ;; esac; tools/packages $@
test-packages: test-wheel test-crate test-deb test-container ## each of them installed and used; each alone: make test-deb
test-wheel: wheel sdist
test-deb: deb
test-crate: crate
test-container: container
test-wheel test-crate test-deb test-container: build set-up-test
	@tools/packages $@
bill-of-materials: set-up-packages ## what is in each package of dist, and under which licences
	@$(BIN)/python tools/bill_of_materials.py
release: set-up-packages ## all of these for VERSION=1.2.0, tried, with checksums; not uploaded; SKIP_TESTS=1 DRY_RUN=1
	@$(TOOL) release '$(VERSION)' $(if $(SKIP_TESTS),--skip-tests) $(if $(DRY_RUN),--dry-run)

lock: ## renew tools/constraints.txt
	@PYTHON='$(PYTHON)' tools/lock
clean: ## remove what was built and set up; results stay
	@rm -rf build build-wheel dist .venv src/freestone/_native .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools workloads -name __pycache__ -type d -prune -exec rm -rf {} +
