# The verbs of the project: demo, test, lint, docs, bench. Each makes what it needs in $(VENV).
.NOTPARALLEL:

VENV ?= .venv
# A name on the PATH may be a shim for a Python that is not there, or be too old: run it and see.
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
PYTHON ?= $(shell for candidate in $(CANDIDATES); do \
	if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$candidate; break; fi; done)
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
STAMPS := $(VENV)/stamps
# One more than there are cores: some tests wait for servers and for other processes.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 8))')
ARGS ?=

# The native engine is built, tested and linted where Rust is, in the edition of the crate: there it may not fail.
RUST := rustc --edition 2024 --print cfg && cargo --version
NATIVE ?= $(shell if { $(RUST); } >/dev/null 2>&1; then echo require; else echo never; fi)
NATIVE := $(NATIVE)
CRATE := --manifest-path rust/Cargo.toml
# `make page` builds the page of omnizarr view, after checking and testing it; installing builds none.
export OMNIZARR_BUILD_PAGE ?= never
SOURCES := setup.py rust/Cargo.toml rust/Cargo.lock $(shell find rust/src rust/crc-fast -name '*.rs')
# Distributions of their own, which are installed, tested and checked with omnizarr.
AS_ZARR := packages/omnizarr-as-zarr
CONFORMANCE := packages/zarr-conformance
MODULES := src/omnizarr/_native*.so src/omnizarr/_native*.pyd
WITHOUT := NOT BUILT, NOT TESTED: the native engine (no cargo, one older than the crate, or NATIVE=never)
SAY := $(if $(filter never,$(NATIVE)),echo "$(WITHOUT)",true)
ifeq ($(NATIVE),never)
ENGINES ?= reference
else
ENGINES ?= native reference
endif
# Tests start many processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# pyo3 would ask the first Python on the PATH.
export PYO3_PYTHON := $(abspath $(BIN)/python)

# Tests of what lies below the engines, asks them for nothing that other tests do not, or names them itself: they run once.
BELOW := $(CONFORMANCE)/tests tests/formats tests/model tests/support tests/stores tests/pictures tests/web tests/benchmarks tests/tools/test_distributed.py \
	tests/netcdf/cdl $(patsubst %,tests/netcdf/tools/test_%.py,in_xarray odd_attributes) \
	$(patsubst %,tests/test_%.py,faultproxy floors names native_build packaging prose servers typed)
# Tests that show most of what differs between engines: `make test` runs them with both.
ABOVE := tests/engine tests/properties

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-room rules test-native test-oldest oldest-installed test-free-threaded free-threaded-installed test-upstream coverage downstream downstream-newest downstream-installed servers lint format docs links conformance bench bench-installed native page dist release release-as-zarr release-conformance clean

help:
	@echo "make demo   the main job on real data"
	@echo "make test   tests and examples in about ten minutes (ARGS=... goes to pytest; ENGINES=native, ENGINES=reference)"
	@echo "make test-room ROOM=codecs the tests of one room: one engine, no server, nothing slow"
	@echo "make rules  what a change anywhere can break, in about two minutes: names, words, imports, requests, tables, conformance"
	@echo "make test-all all tests with both engines, slow ones included, and many more random cases"
	@echo "make test-oldest tests with the lowest versions of all dependencies that pyproject.toml names"
	@echo "make test-free-threaded tests of threads in Python without the GIL (PYTHON=python3.14t)"
	@echo "make test-upstream tests with the main branches of zarr-python, numcodecs, xarray and dask"
	@echo "make coverage which lines and branches the tests run"
	@echo "make downstream the tests of zarr-python, xarray, dask, anndata, ome-zarr and netCDF4-python on omnizarr (ARGS='xarray')"
	@echo "make downstream-newest the same with the newest Python that is there and the newest releases, through accelerate()"
	@echo "make lint   ruff, mypy --strict, basedpyright, codespell, zizmor, rustfmt, clippy; actionlint and vale where they are"
	@echo "make format put the code into the format of ruff and rustfmt"
	@echo "make docs   the manual, in docs/_build/html, and manual pages of the commands, in docs/_build/man"
	@echo "make links  whether the manual's links to other sites lead somewhere"
	@echo "make conformance the cases of zarr-conformance with omnizarr, with both engines, and with the released zarr-python"
	@echo "make bench  speed beside zarr-python, zarrs, TensorStore and others"
	@echo "make dist   wheels and a source distribution in dist, each tried in a new environment"
	@echo "make release check that everything is ready for a release (make release-as-zarr, make release-conformance: of the other distributions)"
	@echo "make servers install the servers that tests start, in .servers (make test does so by itself)"
	@echo "make native build the native engine in place (other verbs do so by themselves; NATIVE=never leaves it out)"
	@echo "make page   build the page of omnizarr view (other verbs do so by themselves; they go without it where npm is missing)"
	@echo "make clean  remove the virtual environment and everything built"

demo test test-all test-native bench-installed: $(STAMPS)/native-$(NATIVE)

test test-all coverage dist: page

demo: $(STAMPS)/demo
	$(BIN)/python examples/demo.py $(ARGS)

# A test that waits for a browser, a server or another process, and runs out of time on a busy machine, runs again; it is
# listed as RERUN. A test that hangs fails after ten minutes.
PATIENT := --timeout 600 --reruns 2 --only-rerun 'TimeoutError|TimeoutExpired|Timeout:? [0-9]+ ?ms' -raR

# With arguments, `make test` runs what they name, with each engine. Without, it leaves out what is slow, tries few random
# cases, and runs with the second engine what depends on engines.
QUICK := $(if $(ARGS),$(ARGS),-m "not slow")
test: export HYPOTHESIS_PROFILE ?= $(if $(ARGS),$(if $(CI),ci,dev),quick)
test: $(STAMPS)/test servers test-native
	@set -e; only=; for engine in $(ENGINES); do \
		echo "== with the $$engine engine"; \
		OMNIZARR_ENGINE=$$engine $(BIN)/python -m pytest -n $(WORKERS) $(PATIENT) $(QUICK) $$only; \
		only="$(if $(ARGS),,$(ABOVE))"; done
	@$(SAY)

# AGAIN=yes: the few tests that fail run once more by themselves, see tests/again.py.
AGAIN ?= no
test-all: export HYPOTHESIS_PROFILE ?= all
test-all: $(STAMPS)/test servers test-native
	@set -e; without=; for engine in $(ENGINES); do \
		echo "== with the $$engine engine"; \
		export OMNIZARR_ENGINE=$$engine; \
		$(BIN)/python -m pytest -n $(WORKERS) $(PATIENT) $$without || \
			{ test $(AGAIN) = yes && $(BIN)/python -m tests.again; }; \
		without="$(addprefix --ignore=,$(BELOW))"; done
	@$(SAY)

# The tests of one room, and the examples in its docstrings: one engine, no server, nothing slow.
ROOM ?=
ROOM_TESTS = $(wildcard tests/$(ROOM) tests/test_$(ROOM).py src/omnizarr/$(ROOM) src/omnizarr/$(ROOM).py)
test-room: export HYPOTHESIS_PROFILE ?= quick
test-room: $(STAMPS)/test $(STAMPS)/native-$(NATIVE)
	@test -n "$(ROOM)" -a -n "$(ROOM_TESTS)" || { echo "say ROOM=codecs, or another folder of src/omnizarr or tests" >&2; exit 1; }
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not server" $(ROOM_TESTS) $(ARGS)

# The tests that state rules of the whole project (the marker `rules`): no server, nothing slow. Only their files are read.
RULES = $(shell grep -rl --include='test_*.py' 'pytest\.mark\.rules' tests packages)
rules: export HYPOTHESIS_PROFILE ?= quick
rules: $(STAMPS)/test $(STAMPS)/native-$(NATIVE)
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "rules and not slow and not server" $(RULES) $(ARGS)

test-native: $(STAMPS)/test
ifneq ($(NATIVE),never)
	cargo test $(CRATE) --locked --quiet --features remote
endif

# With the lowest versions of all dependencies that pyproject.toml names, in an environment of its own.
OLDEST_VENV ?= .venv-oldest

test-oldest: servers
	@$(MAKE) --no-print-directory VENV=$(OLDEST_VENV) oldest-installed
	OMNIZARR_DEPENDENCIES=oldest $(OLDEST_VENV)/bin/python -m pytest -n $(WORKERS) $(PATIENT) $(ARGS)

oldest-installed: $(STAMPS)/oldest

$(STAMPS)/oldest: $(STAMPS)/venv pyproject.toml $(AS_ZARR)/pyproject.toml $(CONFORMANCE)/pyproject.toml $(SOURCES)
	$(PIP) install uv
	OMNIZARR_BUILD_NATIVE=$(NATIVE) $(BIN)/uv pip install --quiet --python $(BIN)/python \
		--resolution lowest-direct --editable '.[all,test]' --editable $(AS_ZARR) --editable $(CONFORMANCE)
	@touch $@

# Python without the GIL, with the native engine: PYTHON=python3.14t. In an environment of its own, without what has no wheels.
FREE_VENV ?= .venv-free
FREE_TESTS := tests/concurrency/test_many_threads.py tests/indexing tests/support tests/stores/test_threads.py \
	tests/stores/test_tasks.py tests/stores/test_pool.py tests/stores/test_interrupts.py tests/test_settings.py

test-free-threaded:
	@$(MAKE) --no-print-directory VENV=$(FREE_VENV) NATIVE=require free-threaded-installed
	$(FREE_VENV)/bin/python -m pytest -n $(WORKERS) $(PATIENT) -m "not slow" $(or $(ARGS),$(FREE_TESTS))

free-threaded-installed: $(STAMPS)/free-threaded

$(STAMPS)/free-threaded: $(STAMPS)/venv pyproject.toml $(SOURCES)
	OMNIZARR_BUILD_NATIVE=$(NATIVE) $(PIP) install --editable '.[free-threaded]'
	@touch $@

# Which lines and branches the tests run, in coverage.xml.
coverage: $(STAMPS)/coverage $(STAMPS)/native-$(NATIVE) servers
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(WORKERS) $(PATIENT) -m "not slow" --cov --cov-report=xml --cov-report=term:skip-covered $(ARGS)

# With the main branches of the packages that omnizarr meets most, in an environment of its own.
UPSTREAM_VENV ?= .venv-upstream
UPSTREAM := zarr-developers/zarr-python zarr-developers/numcodecs pydata/xarray
UPSTREAM_DASK := dask/dask dask/distributed

# dask and distributed each ask for a release of the other, which a main branch is not: pip must not look.
test-upstream: export GIT_TERMINAL_PROMPT = 0
test-upstream:
	@git ls-remote --quiet https://github.com/$(firstword $(UPSTREAM)) HEAD >/dev/null 2>&1 || { \
		echo "NOT TESTED: main branches of other packages (https://github.com cannot be reached)" >&2; exit 1; }
	@$(MAKE) --no-print-directory servers
	@$(MAKE) --no-print-directory VENV=$(UPSTREAM_VENV) $(UPSTREAM_VENV)/stamps/native-$(NATIVE) $(UPSTREAM_VENV)/stamps/test
	$(UPSTREAM_VENV)/bin/python -m pip install --upgrade $(UPSTREAM:%=git+https://github.com/%)
	$(UPSTREAM_VENV)/bin/python -m pip install --upgrade --no-deps $(UPSTREAM_DASK:%=git+https://github.com/%)
	$(UPSTREAM_VENV)/bin/python -m pytest -n $(WORKERS) $(PATIENT) -m "not slow" $(ARGS)

# The tests of other packages, in an environment of their own: they need libraries that nothing here does.
DOWNSTREAM_VENV ?= .venv-downstream
DOWNSTREAM ?= downstream-oldest

downstream:
	@$(MAKE) --no-print-directory VENV=$(DOWNSTREAM_VENV) downstream-installed
	$(DOWNSTREAM_VENV)/bin/python -m tests.downstream --workers $(WORKERS) $(ARGS)

downstream-installed: $(STAMPS)/native-$(NATIVE) $(STAMPS)/downstream

$(STAMPS)/downstream: $(STAMPS)/venv pyproject.toml $(AS_ZARR)/pyproject.toml
	$(PIP) install uv
	OMNIZARR_BUILD_NATIVE=never $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[all,$(DOWNSTREAM)]' \
		--editable $(AS_ZARR)
	@touch $@

# The same with the newest Python that is there, and the newest releases of the packages.
NEWEST_PYTHON ?= $(shell for candidate in python3.14 python3.13 python3.12; do \
	if $$candidate -c 'import venv, ensurepip' >/dev/null 2>&1; then echo $$candidate; break; fi; done)

downstream-newest:
	@test -n "$(NEWEST_PYTHON)" || { echo "NOT TESTED: newest releases of other packages (no Python >= 3.12)" >&2; exit 1; }
	@$(MAKE) --no-print-directory VENV=$(DOWNSTREAM_VENV)-newest PYTHON=$(NEWEST_PYTHON) DOWNSTREAM=downstream downstream-installed
	$(DOWNSTREAM_VENV)-newest/bin/python -m tests.downstream --workers $(WORKERS) $(or $(ARGS),'codec pipeline')

# What tests start, see tests/servers.py. None of them is required: what cannot be had is said so, and its tests are skipped.
# moto is installed with the other libraries of the tests.
SERVERS := $(CURDIR)/.servers
VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0
FAKE_GCS := github.com/fsouza/fake-gcs-server@v1.56.1
AZURITE := azurite@3.35.0
ZARRITA := zarrita@0.7.5
PYODIDE := pyodide@314.0.7
# $(call have,PROGRAM): is it there? $(call put,PROGRAM,LOST,COMMAND): put it there, or say what is lost.
have = PATH="$$OMNIZARR_SERVERS:$(SERVERS)/bin:$(SERVERS)/node_modules/.bin:$$PATH" command -v $(1) >/dev/null
put = { echo "installing $(1)"; $(3) >$(SERVERS)/$(1).log 2>&1 || { \
	echo "NOT INSTALLED: $(1); skipped: $(2); why: $$(tail -n 1 $(SERVERS)/$(1).log)"; }; }
install-npm = npm install --prefix $(SERVERS) --no-audit --no-fund --fetch-retries 1
install-go = env GOBIN=$(SERVERS)/bin GOTOOLCHAIN=local CGO_ENABLED=0 go install -ldflags=-s

servers:
	@mkdir -p $(SERVERS)
	@$(call have,azurite-blob) || $(call put,azurite-blob,tests of Azure,\
		$(install-npm) $(AZURITE))
	@test -d $(SERVERS)/node_modules/zarrita || $(call put,zarrita,tests of zarrita.js,$(install-npm) $(ZARRITA))
	@test -d $(SERVERS)/node_modules/pyodide || $(call put,pyodide,tests of Pyodide,$(install-npm) $(PYODIDE))
	@$(call have,versitygw) || $(call have,minio) || $(call put,versitygw,tests of S3 but those with moto,\
		$(install-go) $(VERSITYGW))
	@$(call have,fake-gcs-server) || $(call put,fake-gcs-server,tests of Google Cloud Storage,\
		$(install-go) $(FAKE_GCS))

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/codespell src packages docs rust/src .github examples *.md
	$(BIN)/zizmor --offline --quiet .github
	@if ! command -v actionlint >/dev/null; then echo "NOT CHECKED: syntax of the workflows (no actionlint)"; else actionlint; fi
	@if ! command -v vale >/dev/null; then echo "NOT CHECKED: style of the manual (no vale)"; else \
		test -f .vale/Google/meta.json || vale sync >/dev/null 2>&1 || { mkdir -p .vale/Google; \
			echo "NOT CHECKED: Google's style of the manual (vale cannot download it)"; }; \
		vale --output=line *.md docs; fi
ifneq ($(NATIVE),never)
	cargo fmt $(CRATE) --check
	cargo clippy $(CRATE) --locked --quiet --all-targets --features python,remote -- -D warnings
endif

format: $(STAMPS)/lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
ifneq ($(NATIVE),never)
	cargo fmt $(CRATE)
endif

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build/html
	$(BIN)/python -m omnizarr.cli.man docs/_build/man
	@echo "docs/_build/html/index.html, docs/_build/man"

# Links to other sites, which `make docs` does not look at: it needs no network.
links: $(STAMPS)/docs
	$(BIN)/python -m sphinx --builder linkcheck --keep-going --quiet docs docs/_build/links

# The cases of zarr-conformance with omnizarr, and with the newest zarr-python that can be had, which may fail in some of them.
KIT = $(BIN)/python -m zarr_conformance run --levels all
ZARR_VENV ?= .venv-zarr

conformance: $(STAMPS)/test $(STAMPS)/native-$(NATIVE)
	@set -e; for engine in $(ENGINES); do echo "== with the $$engine engine"; \
		OMNIZARR_ENGINE=$$engine $(KIT) --impl omnizarr --allow $(CONFORMANCE)/tests/omnizarr.txt $(ARGS); done
	@test -d $(ZARR_VENV) || { $(BENCH_PYTHON) -m venv $(ZARR_VENV) && $(ZARR_VENV)/bin/python -m pip install --quiet zarr; }
	$(KIT) --impl zarr-python --python $(ZARR_VENV)/bin/python --quiet $(ARGS) || true

# In an environment of its own: some of the libraries compared with want a newer Python than omnizarr does.
BENCH_VENV ?= .venv-bench
BENCH_PYTHON ?= $(shell for candidate in python3.12 python3.13 $(PYTHON); do \
	if $$candidate -c 'import venv, ensurepip' >/dev/null 2>&1; then echo $$candidate; break; fi; done)

bench:
	@$(MAKE) --no-print-directory VENV=$(BENCH_VENV) PYTHON=$(BENCH_PYTHON) bench-installed
	$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)

bench-installed: $(STAMPS)/bench

native: $(STAMPS)/native-$(NATIVE)
ifeq ($(NATIVE),never)
	@echo "$(WITHOUT)" >&2; exit 1
else
	@$(BIN)/python -c 'import omnizarr._native as native; print(native.__file__)'
endif

# The page of omnizarr view, from viewer: built again only if its sources changed. A source distribution brings it along.
PAGE := src/omnizarr/web/page/index.html
NODE := npm --version && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))'

page: $(PAGE)

$(PAGE): $(filter-out viewer/README.md,$(wildcard viewer/*.*)) $(wildcard viewer/src/* viewer/static/* viewer/test/*)
	@if ! { $(NODE); } >/dev/null 2>&1; then echo "NOT BUILT: the page of omnizarr view (no npm, or node older than 20)"; \
	elif ! npm --prefix viewer ci --loglevel=error --fetch-retries 1; then echo "NOT BUILT: the page of omnizarr view (its packages cannot be had)"; \
	else npm --prefix viewer run --silent check && npm --prefix viewer test --silent && npm --prefix viewer run --silent build; fi

# A source distribution, a wheel with the native engine for machines like this one, and one without it for all others.
# Each wheel is installed into an environment with nothing but Python, and used there.
dist: $(STAMPS)/dist
	rm -rf dist build
	$(BIN)/python -m build --sdist --outdir dist
	OMNIZARR_BUILD_NATIVE=never $(BIN)/python -m build --wheel --outdir dist dist/*.tar.gz
ifneq ($(NATIVE),never)
	OMNIZARR_BUILD_NATIVE=require $(BIN)/python -m build --wheel --outdir dist/built dist/*.tar.gz
	@if [ "$$(uname)" = Linux ]; then \
		PATH="$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/built/*.whl; else mv dist/built/*.whl dist; fi
	@rm -rf dist/built
endif
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.distributions dist
	rm -rf $(AS_ZARR)/dist $(AS_ZARR)/build
	$(BIN)/python -m build --outdir $(AS_ZARR)/dist $(AS_ZARR)
	$(BIN)/twine check --strict $(AS_ZARR)/dist/*
	$(BIN)/python -m tests.distributions dist --as-zarr $(AS_ZARR)/dist
	rm -rf $(CONFORMANCE)/dist $(CONFORMANCE)/build
	$(BIN)/python -m build --outdir $(CONFORMANCE)/dist $(CONFORMANCE)
	$(BIN)/twine check --strict $(CONFORMANCE)/dist/*
	$(BIN)/python -m tests.distributions dist --conformance $(CONFORMANCE)/dist

# What must hold before a version is published; see "Releases" in CONTRIBUTING.md.
release: dist
	$(BIN)/python -m tests.release dist

release-conformance: dist
	$(BIN)/python -m tests.release --conformance $(CONFORMANCE)/dist

release-as-zarr: dist
	$(BIN)/python -m tests.release --as-zarr $(AS_ZARR)/dist

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(OLDEST_VENV) $(UPSTREAM_VENV) $(DOWNSTREAM_VENV)* $(SERVERS) build dist $(AS_ZARR)/build $(AS_ZARR)/dist $(CONFORMANCE)/build $(CONFORMANCE)/dist docs/_build demo-output coverage.xml .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf rust/target rust/fuzz/target $(MODULES) viewer/node_modules src/omnizarr/web/page
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# The engine, in src/omnizarr: built again only if its sources changed.
$(STAMPS)/native-never: $(STAMPS)/venv
	@echo "$(WITHOUT)"
	@rm -f $(STAMPS)/native-* $(MODULES)
	@touch $@

$(STAMPS)/native-%: $(STAMPS)/venv $(SOURCES)
	@rm -f $(STAMPS)/native-*
	OMNIZARR_BUILD_NATIVE=$* $(PIP) install --editable .
	@touch $@

# One stamp per extra: what is installed is installed again only if pyproject.toml changed.
$(STAMPS)/%: $(STAMPS)/venv pyproject.toml $(AS_ZARR)/pyproject.toml $(CONFORMANCE)/pyproject.toml
	OMNIZARR_BUILD_NATIVE=never $(PIP) install --editable '.[all,$*]' --editable $(AS_ZARR) --editable $(CONFORMANCE)
	@touch $@
