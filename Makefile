# Needs python3 (3.11 or newer) and make; everything else is fetched into .tools/ and .venv/.

.DEFAULT_GOAL := help
.PHONY: help run sync test postgres rabbitmq promtool faketime strace xfs ip chromium screenshots lint format types bench crash soak fuzz clean

PYTHON ?= python3
WORKERS ?= 3
ARGS ?=
SEEDS ?= 5000
MINUTES ?= 60

UV := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
BIN := .venv/bin

# The environment is always ours, made with a Python that is here already.
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS ?= never
unexport VIRTUAL_ENV
# Compiled once, not at every start: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(UV) ## start the engine on SQLite in ./data (ARGS="--port 9000")
	@$(UV) sync --frozen --no-default-groups --inexact --quiet
	@mkdir -p data
	@exec $(BIN)/tidings serve $(ARGS)

sync: $(UV)
	@$(UV) sync --frozen --all-extras --group fuzz --inexact --quiet

test: lint types postgres rabbitmq faketime strace xfs ip chromium promtool ## check and test everything (ARGS="-k retry")
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup $(ARGS)

lint: sync ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: sync
	$(BIN)/mypy

format: sync ## rewrite the code in the house's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The development wheel carries PostgreSQL; where it does not run, root installs the system's.
postgres: sync
	@$(BIN)/python -c 'from tidings.testing import Cluster; raise SystemExit(Cluster.find() is None)' \
	|| { $(call INSTALL,postgresql); } \
	|| echo "No PostgreSQL 14 or newer, and it could not be installed: its tests will be skipped."

# The tests start a broker of their own; the package's service is kept from starting while it is installed.
rabbitmq: sync
	@$(BIN)/python -c 'from tidings.testing import Rabbit; raise SystemExit(Rabbit.find() is None)' \
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

fuzz: $(UV) postgres ## made-up calls of every route of the API (ARGS="--cases 100 --seed 7")
	$(UV) run --frozen --all-extras --group fuzz python -m tests.fuzz $(ARGS)

clean: ## remove what was built; ./data stays
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's python3 comes without ensurepip: then pip itself is fetched, checked, and run from its wheel.
.tools/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit("Tidings needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "Fetching uv into .tools ..."
	@$(PYTHON) -m venv --clear .tools >/dev/null 2>&1 && .tools/bin/python -m pip install --quiet uv \
	|| { $(PYTHON) -m venv --clear --without-pip .tools && .tools/bin/python -c "$$FETCH_PIP" \
	     && .tools/bin/python .tools/pip.whl/pip install --quiet uv; }

define FETCH_PIP
import hashlib, json
from urllib.parse import urljoin
from urllib.request import urlopen
index = "https://pypi.org/pypi/pip/json"
wheel = next(file for file in json.load(urlopen(index))["urls"] if file["packagetype"] == "bdist_wheel")
content = urlopen(urljoin(index, wheel["url"])).read()
assert hashlib.sha256(content).hexdigest() == wheel["digests"]["sha256"], "pip arrived damaged"
open(".tools/pip.whl", "wb").write(content)
endef
export FETCH_PIP
