# Two commands matter: `make start` and `make test`. Both set up what is missing.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: start install uninstall test test-all durations coverage test-windows test-macos-shim check bench soak lock docs wheel release-check debian clean help

help:            ## Show what there is
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

.venv/.base: requirements/base.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or later is needed"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@echo "Installing locked dependencies into .venv (once; a minute or two)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/base.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: .venv/.base requirements/dev.txt
	@echo "Installing what the tests need (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

start: .venv/.base      ## Set up what is missing and serve a demo folder (FOLDER=path for your own)
	@$(BIN)/computer-linker start $(if $(FOLDER),"$(FOLDER)")

PREFIX ?= $(HOME)/.local
INSTALLED = $(PREFIX)/share/computer-linker
PIP = $(INSTALLED)/bin/python -m pip install -q --disable-pip-version-check

install:         ## Put computer-linker on your PATH, with an environment of its own (PREFIX=~/.local, EXTRAS=fleet,ocr)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or later is needed"; exit 1; }
	@echo "Installing into $(INSTALLED) (a minute or two)"
	@$(PYTHON) -m venv "$(INSTALLED)"
	@$(PIP) --require-hashes -r requirements/base.txt
	@$(PIP) --no-build-isolation --force-reinstall --no-deps .
	@$(if $(EXTRAS),$(PIP) --no-build-isolation ".[$(EXTRAS)]",:)
	@mkdir -p "$(PREFIX)/bin" && ln -sfn "$(INSTALLED)/bin/computer-linker" "$(PREFIX)/bin/computer-linker"
	@echo "Installed $$("$(PREFIX)/bin/computer-linker" --version) as $(PREFIX)/bin/computer-linker"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "Add this to your shell's profile:  export PATH=\"$(PREFIX)/bin:\$$PATH\"";; esac

uninstall:       ## Remove what `make install` installed; ~/.computer-linker stays
	@rm -rf "$(INSTALLED)" "$(PREFIX)/bin/computer-linker"
	@echo "Removed. Left: your state folder (~/.computer-linker), and what docs/how-to/install-upgrade-uninstall.md lists"

debian:          # Debian packages for the desktop and sandbox tests, where this user may install them; NO_APT=1 leaves the system as it is
	@NO_APT="$(NO_APT)" sh tests/install-debian-packages.sh

# Three at a time, also on two cores: most tests wait for something.
PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder

test: .venv/.dev debian  ## Set up and run every area's tests, without the long permutations (NO_APT=1 installs no Debian packages)
	$(PYTEST) $(PARALLEL) -m "not soak and not long"

test-all: .venv/.dev debian  ## Every test but the soaks, with those of macOS and Windows; a run that passes is evidence for a release
	@rm -rf .tools/elsewhere
	$(PYTEST) $(PARALLEL) -m "not soak" --junitxml=.tools/junit.xml
	@PYTHONPATH=tests $(BIN)/python -m support.elsewhere macos windows
	@PYTHONPATH=tests $(BIN)/python -m support.release_evidence run .tools/junit.xml
	@test ! -f .tools/honesty.txt || { echo "What was said of acts on the desktop, and what is true:"; cat .tools/honesty.txt; }

durations:       ## Where the seconds of the last `make test-all` went, and what of them `make test` has
	@PYTHONPATH=tests $(BIN)/python -m support.durations .tools/junit.xml

coverage: .venv/.dev debian  ## Coverage of src by every test, with its floor, or by one AREA, as tests/policy, without one
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PARALLEL) -m "not soak" $(or $(AREA),tests)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered $(if $(AREA),--fail-under=0 --show-missing)

test-windows: .venv/.dev debian  ## The product in Windows Python, under wine; a part of test-all
	@rm -f .tools/elsewhere/windows-*
	$(PYTEST) tests/windows
	@PYTHONPATH=tests $(BIN)/python -m support.elsewhere windows

test-macos-shim: .venv/.dev  ## Suites on a stand-in for macOS: this machine without what macOS lacks; a part of test-all
	@rm -f .tools/elsewhere/macos-*
	$(PYTEST) tests/macos
	@PYTHONPATH=tests $(BIN)/python -m support.elsewhere macos

soak: .venv/.dev debian  ## The long fuzz, kill and race runs
	$(PYTEST) -m soak --timeout 7200 --hypothesis-profile=soak

check: .venv/.dev        ## Format, lint, types of source and tests, import contract, house rules
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(PYTEST) -q tests/rules

bench: .venv/.dev        ## Ratios to the raw limits, measured in one run (FAMILY=files for one)
	$(BIN)/python -m benchmarks $(FAMILY)

docs: .venv/.dev         ## Record the answers of the examples, and write the generated reference
	RECORD_EXAMPLES=1 $(PYTEST) -q tests/registry/test_examples.py
	$(BIN)/python -m computer_linker.registry.phrases
	$(BIN)/python -m computer_linker.registry.reference
	$(BIN)/python -m computer_linker.cli.reference

wheel: .venv/.dev        ## Build wheel and sdist into dist
	$(BIN)/python -m hatchling build -d dist

release-check: .venv/.dev  ## What stands in the way of a release: metadata, versions, changelog, licence, evidence (BY_HAND=1, DRAFT=1)
	@PYTHONPATH=tests $(BIN)/python -m support.release_check $(if $(BY_HAND),--by-hand) $(if $(DRAFT),--draft)

lock:            ## Lock the dependencies with hashes (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url pyproject.toml --extra build --extra code --extra desktop --extra documents --extra peers -o requirements/base.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url pyproject.toml --all-extras -o requirements/dev.txt

clean:           ## Remove what was installed
	rm -rf .venv .tools
