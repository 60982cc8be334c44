# make run    set up, record mnist-cnn and show it
# make test   what needs nothing but Python: rules, screens, one run from end to end; some minutes
# make test-landing  of each promise to users the tests that would notice its loss, with real engines,
#      terminals and a browser; what CI runs beside make test
# make test-all  both and all the rest: every fault, size, program and place; an hour
# make nightly   that, fuzz by the ten thousand, every fault as often as documented, the soak, the simulations,
#      make sbom and make versions: hours
# make lint   ruff, mypy --strict                         make bench  what reporting costs a workload
# make bench-tui  what the screens cost beside nvitop, nvtop and gpustat; bench-recorder, the recorder;
#      bench-overhead, a workload's slowdown; bench-scale, a day's session and 1,000 of them
# make soak   half an hour of runs and faults beside programs that stay: what is left, what grows
# make sbom   what it is made of, under which licences, and whether a vulnerability is known
# make fuzz   10,000 hostile sessions and 8,000 other files from elsewhere: what is made of each
# make versions  make test with the oldest and the newest Python and dependencies
# make simulations  how often verdicts err and what they find: tables of docs/statistics.md, measurement.md
# make faults inject every fault as often as docs/reliability.md tells, and write its table
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Most tests wait for processes: two cores have time for four.
WORKERS ?= 4
FAST_WORKERS ?= $(shell expr $$(nproc) + 3)
SOAK_MINUTES ?= 30
# Files of `make test` are kept in memory where there is room for them, which saves a quarter of its time.
IN_MEMORY := $(shell test $$(df --output=avail /dev/shm 2>/dev/null | tail -1) -gt 4000000 2>/dev/null \
  && ! grep -q ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts && echo /dev/shm)
# In the gate (.ci/run) tests that failed are tried once more at its end; anything else ends it at once.
later = $(if $(GATE),|| { test $$? -eq 1 && mkdir -p build && echo $@ >>build/failed-tiers; })
# Tests start hundreds of Pythons: without bytecode files each compiles all modules anew.
export PYTHONDONTWRITEBYTECODE :=

has_torch = -c "import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in ('torch', 'torchvision')))"

.PHONY: run test test-landing test-again test-all nightly lint format bench bench-tui bench-recorder bench-overhead bench-scale faults fuzz simulations soak versions sbom clean

run: $(VENV)/.run
	$(BIN)/gpuwatch run mnist-cnn --steps 500 $$($(PYTHON) $(has_torch) && echo --python $(PYTHON))

test: $(VENV)/.test
	PYTEST_DEBUG_TEMPROOT=$(IN_MEMORY) $(BIN)/python -m pytest -n $(FAST_WORKERS) --dist loadfile -m "not system" $(later)

test-landing: $(VENV)/.test
	@# By name, so that nothing else is collected.
	mkdir -p build && $(BIN)/python -m tests.landing >build/landing.txt
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder @build/landing.txt $(later)

test-again: $(VENV)/.test
	$(BIN)/python .ci/again.py

test-all: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

nightly: test-all sbom fuzz faults soak simulations versions
	$(BIN)/python -m tests.fuzz.traced

simulations: $(VENV)/.test
	$(BIN)/python -m benchmarks.power
	$(BIN)/python -m benchmarks.disturbances
	$(BIN)/python -m tests.analysis.ranks.simulated

versions: $(VENV)/.audit
	$(BIN)/python -m tests.versions build/versions

faults: $(VENV)/.test
	rows=$$(mktemp -d) && trap 'rm -r "$$rows"' EXIT && GPUWATCH_FAULT_ROWS=$$rows $(BIN)/python -m pytest --timeout 1800 tests/faults \
	  && $(BIN)/python -m tests.faults.table $$rows

soak: $(VENV)/.test
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES)

sbom: $(VENV)/.audit
	$(BIN)/python .ci/sbom.py build/sbom.cdx.json

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python benchmarks/reporting.py

bench-tui: $(VENV)/.test
	$(BIN)/python -m benchmarks.tui

bench-recorder bench-overhead bench-scale: bench-%: $(VENV)/.test
	$(BIN)/python -m benchmarks.$*

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" || \
	  { echo "error: $(PYTHON) is older than Python 3.10; choose another: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || \
	  { echo "error: $(PYTHON) has no venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@# A Python that has torch already lends it; nothing is installed into it.
	$(PYTHON) -m venv $$($(PYTHON) $(has_torch) && echo --system-site-packages) $(VENV)

$(VENV)/.run: pyproject.toml setup.py | $(BIN)/python
	@if $(PYTHON) $(has_torch); then wanted=.; else wanted='.[workloads]'; fi; \
	  echo "installing $$wanted into $(VENV)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check -e "$$wanted"
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@if $(BIN)/python $(has_torch); then wanted='.[dev]'; else wanted='.[workloads,dev]'; fi; \
	  echo "installing $$wanted into $(VENV)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check -e "$$wanted"
	@touch $@

$(VENV)/.audit: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[audit]'
	@touch $@
