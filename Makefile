# Needs python3 (3.11 or newer) with venv or pip, and make; everything else is installed into .tools/ and .venv/.

.DEFAULT_GOAL := help
.PHONY: help run sync quick quick-tests test collect coverage contract wheel-check audit dist postgres pgbouncer mariadb rabbitmq promtool faketime strace xfs ip chromium screenshots docs lint format types bench crash soak fuzz clean

PYTHON ?= python3
WORKERS ?= 5
ARGS ?=
SEEDS ?= 5000
MINUTES ?= 60

# Tests that need no server, no root and no real process.
QUICK := not (postgres or rabbitmq or crash or process or slow)

UV := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
BIN := .venv/bin

# The environment is always ours, made with a Python that is here already.
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS ?= never
unexport VIRTUAL_ENV
# Compiled once, not at every start: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(UV) ## start the engine on SQLite in ./data (ARGS="--port 9000")
	@$(UV) sync --frozen --no-default-groups --inexact --quiet
	@mkdir -p -m 700 data
	@exec $(BIN)/tidings serve $(ARGS)

sync: $(UV)
	@$(UV) sync --frozen --all-extras --group docs --group fuzz --inexact --quiet --compile-bytecode

quick: lint ## unit tests, contract tests on SQLite, lint, types: no servers, no root, about a minute
	@$(MAKE) --no-print-directory -j 2 -O types quick-tests

quick-tests: sync
	$(BIN)/pytest -q -n 3 --dist loadgroup --hypothesis-profile=quick -m "$(QUICK)" tests/unit tests/contract tests/layers $(ARGS)

test: lint postgres pgbouncer mariadb rabbitmq faketime strace xfs ip chromium promtool ## check and test everything (ARGS="-k retry", COVERAGE=1)
	@$(MAKE) --no-print-directory -j 2 -O types collect
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup $(if $(COVERAGE),--cov --cov-report=) $(ARGS)
	$(if $(COVERAGE),@$(MAKE) --no-print-directory coverage)

# Compiles the tests once, on the core that mypy leaves idle; otherwise every worker does it in a fresh clone.
collect: sync
	@$(BIN)/pytest -qq --collect-only >/dev/null || $(BIN)/pytest -qq --collect-only --no-header -rN

coverage: ## what the last `make test COVERAGE=1` did not reach, least covered modules first
	$(BIN)/coverage report --sort=cover --skip-covered | sed -n 1,40p
	$(BIN)/coverage report --format=total

contract: sync ## the contract tests alone (TIDINGS_TEST_POSTGRES names a running server)
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup tests/contract $(ARGS)

wheel-check: sync ## build the wheel, install it alone, read its docs, send a first message
	$(BIN)/python -m tests.packaging.wheel

# Needs the network, so it is not part of `make test`; every version of the lock file is checked by its hash.
PIP_AUDIT_VERSION := 2.10.1
audit: $(UV) ## look up known vulnerabilities of the locked dependencies
	@mkdir -p .tools && rm -f .tools/audit.txt
	@$(UV) export --quiet --frozen --no-default-groups --all-extras --no-emit-project --output-file .tools/locked.txt >/dev/null
	@$(UV) tool run --quiet pip-audit==$(PIP_AUDIT_VERSION) --requirement .tools/locked.txt --require-hashes --disable-pip \
	  --strict --progress-spinner off --output .tools/audit.txt \
	|| { test -s .tools/audit.txt || echo "The audit did not take place: pip-audit or its vulnerability service was not reached." >&2; \
	  cat .tools/audit.txt 2>/dev/null; exit 1; }

# What a release publishes: the sdist, the wheel, and a software bill of materials.
dist: $(UV) ## build the distribution and its SBOM into dist/
	rm -rf dist
	$(UV) build --quiet
	$(UV) export --quiet --frozen --no-default-groups --all-extras --format cyclonedx1.5 --preview-features sbom-export \
	  --output-file dist/tidings-sbom.cdx.json >/dev/null

lint: sync ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# On a busy machine mypy's workers can miss their start-up limit, an internal error (exit code 2): then it runs without them.
types: sync
	$(BIN)/mypy -n 2 || { test $$? = 2 && $(BIN)/mypy; }

format: sync ## rewrite the code in the house's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The development wheel carries PostgreSQL; where it does not run, root installs the system's.
postgres: sync
	@$(BIN)/python -c 'from tidings.testing import PostgresCluster; raise SystemExit(PostgresCluster.find() is None)' \
	|| { $(call INSTALL,postgresql); } \
	|| echo "No PostgreSQL 14 or newer, and it could not be installed: its tests will be skipped."

# The tests start a broker of their own; the package's service is kept from starting while it is installed.
rabbitmq: sync
	@$(BIN)/python -c 'from tidings.testing import RabbitBroker; raise SystemExit(RabbitBroker.find() is None)' \
	|| { $(call INSTALL_STILL,rabbitmq-server); } \
	|| echo "No RabbitMQ, and it could not be installed: its tests will be skipped."

# For the test of the rules in deploy/; only promtool is wanted of the package, not its service.
promtool:
	@command -v promtool >/dev/null \
	|| { $(call INSTALL_STILL,prometheus); } \
	|| echo "promtool is not here and could not be installed: its test will be skipped."

# Only root can; elsewhere the tests that need it are skipped, and say so.
INSTALL = test "$$(id -u)" = 0 && apt-get update -qq \
  && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(1)

# A program and the package that has it.
NEED = command -v $(1) >/dev/null || { $(call INSTALL,$(2)); } \
  || echo "$(1) is not here and could not be installed: its tests will be skipped."

# Debian asks this file whether a service may be started; where there is one already, it stays as it is.
POLICY := /usr/sbin/policy-rc.d
define INSTALL_STILL
test "$$(id -u)" = 0 && { \
  test -e $(POLICY) || { printf '\043!/bin/sh\nexit 101\n' | install -m 755 /dev/stdin $(POLICY); ours=$(POLICY); }; \
  $(INSTALL); \
  status=$$?; test -z "$$ours" || rm -f "$$ours"; test $$status = 0; }
endef

# For tests of a clock that is set back.
faketime:
	@ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 \
	|| { $(call INSTALL,faketime); } \
	|| echo "faketime is not here and could not be installed: its test will be skipped."

# For tests of disks that fail and of power cuts.
strace:
	@$(call NEED,strace,strace)

# For tests of a pooler in front of PostgreSQL; its service is kept from starting.
pgbouncer:
	@command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer || { $(call INSTALL_STILL,pgbouncer); } \
	|| echo "pgbouncer is not here and could not be installed: its tests will be skipped."

# For tests of imports from MySQL; the packages have no service. The client's brings my_print_defaults, which setting up a server needs.
mariadb:
	@{ command -v my_print_defaults >/dev/null && { command -v mariadbd >/dev/null || test -x /usr/sbin/mariadbd; }; } \
	|| { $(call INSTALL,mariadb-server-core mariadb-client-core); } \
	|| echo "MariaDB is not here and could not be installed: its tests will be skipped."

# For tests of power cuts: its file system copies a disk in a moment.
xfs:
	@$(call NEED,mkfs.xfs,xfsprogs)

# For tests of a network that is cut: hosts of their own, with a cable between them.
ip:
	@$(call NEED,ip,iproute2)

# For tests of the pages in a real browser.
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { $(call INSTALL,chromium); } \
	|| echo "Chromium is not here and could not be installed: its tests will be skipped."

screenshots: sync chromium ## pictures of the pages, into docs/screenshots
	$(BIN)/python -m tests.browser.screenshots

docs: sync ## serve the documentation on 127.0.0.1:8000, rebuilt on every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --livereload $(ARGS)

bench: $(UV) ## measure against peers and the raw limits
	$(UV) run --frozen --all-extras --group bench python -m bench $(ARGS)

crash: sync postgres rabbitmq faketime strace xfs ip ## crash drills, longer than in make test
	TIDINGS_CRASH_SCALE=$${TIDINGS_CRASH_SCALE:-4} $(BIN)/pytest tests/simulation/test_elsewhere.py -q --timeout 600
	TIDINGS_CRASH_SCALE=$${TIDINGS_CRASH_SCALE:-4} $(BIN)/pytest tests/crash -m crash --timeout 3600 $(ARGS)

soak: sync postgres rabbitmq faketime strace xfs ip ## a fleet under fire, simulated worlds, crash drills for hours (MINUTES=60 SEEDS=20000)
	$(BIN)/python -m bench.soak --minutes $(MINUTES)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)
	TIDINGS_MACHINE_EXAMPLES=$${TIDINGS_MACHINE_EXAMPLES:-300} $(BIN)/pytest tests/simulation/test_store_machine.py -q --timeout 7200
	TIDINGS_CRASH_SCALE=$${TIDINGS_CRASH_SCALE:-50} $(BIN)/pytest tests/crash -m crash --timeout 43200 $(ARGS)

fuzz: $(UV) postgres ## made-up calls of every route, and ten minutes without a key (ARGS="--cases 100 --seconds 60 --seed 7")
	$(UV) run --frozen --all-extras --group fuzz python -m tests.fuzz $(ARGS)

clean: ## remove what was built; ./data stays
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The machine's own clients install uv, from the index they are configured for: pip in a virtual environment, else
# the pip of $(PYTHON) (Debian's python3 has no ensurepip), else, for root, pip after installing python3-venv.
UV_VERSION := 0.13.8
UV_IN_VENV = { rm -rf .tools; $(PYTHON) -m venv .tools >/dev/null 2>&1; } \
  && .tools/bin/python -m pip install --quiet uv==$(UV_VERSION)
UV_BY_PIP = { rm -rf .tools; $(PYTHON) -m pip --version >/dev/null 2>&1; } \
  && $(PYTHON) -m pip install --quiet --target .tools uv==$(UV_VERSION)

.tools/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit("Tidings needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "Installing uv $(UV_VERSION) into .tools ..."
	@{ $(UV_IN_VENV); } || { $(UV_BY_PIP); } || { $(call INSTALL,python3-venv) && $(UV_IN_VENV); } || { rm -rf .tools; \
	  echo "Could not install uv with $(PYTHON). Install one of these, then run make again:" >&2; \
	  echo "  uv itself, on the PATH;" >&2; \
	  echo "  pip and venv for $(PYTHON) (Debian, Ubuntu: apt-get install python3-venv)." >&2; \
	  echo "If pip reported an error above, check its index and network settings: pip config list" >&2; exit 1; }
