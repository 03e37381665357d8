# Two commands: `make demo` and `make test`. Both set up what is missing in .venv first.
PYTHON ?= python3.11
VENV := .venv
INSTALLED := $(VENV)/.installed

.PHONY: demo test checks lint types layers programs pytest mutants clean

demo: $(INSTALLED)
	$(VENV)/bin/ramify demo

# The checks use one core, and pytest does not always use all, so both run at the same time.
test: $(INSTALLED)
	@trap 'kill $$checks' INT TERM; $(MAKE) --no-print-directory checks & checks=$$!; \
	  $(MAKE) --no-print-directory pytest; code=$$?; \
	  wait $$checks || { echo 'error: ruff, mypy or import-linter failed; see their messages above' >&2; exit 1; }; \
	  exit $$code

# What they print stays together, although pytest prints at the same time.
checks: $(INSTALLED)
	@printed=$$($(MAKE) --no-print-directory lint types layers 2>&1); code=$$?; printf '\n%s\n' "$$printed"; exit $$code

lint: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(INSTALLED)
	$(VENV)/bin/mypy

layers: $(INSTALLED)
	$(VENV)/bin/lint-imports

# The tests of the web page need Debian's Chromium, and those of several machines need the program ip. If these cannot be
# installed, pytest leaves the tests out and says so.
programs:
	@{ command -v chromium && command -v ip; } >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get update && apt-get install --yes --no-install-recommends chromium iproute2; } >/dev/null 2>&1; } || true

# Several processes, because most tests use one core; more than four could need too much memory. A process that has no
# tests left takes some from another.
pytest: $(INSTALLED) programs
	$(VENV)/bin/pytest -n logical --maxprocesses 4 --dist worksteal

# Introduces small defects, one at a time, which the tests must detect. This takes half an hour or more, so `make test`
# does not include it. MUTANTS='-k networks --jobs 2' tries those with "networks" in their description, two at a time.
mutants: $(INSTALLED)
	$(VENV)/bin/python -m tests.mutation $(MUTANTS)

# constraints.txt pins the versions that were tested; pyproject.toml says what ramify works with.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
