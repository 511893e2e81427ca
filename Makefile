PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: setup attack test lint clean

setup: $(STAMP)  ## a virtual environment with everything the other targets need; nothing to do when current

$(STAMP): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	mkdir -p $(VENV)/types && ln -sfn ../.. $(VENV)/types/scrimp
	touch $(STAMP)

attack: setup  ## attack held-out movie-review sentences with the embedded victim
	$(BIN)/scrimp attack $(ARGS)

test: setup
	$(BIN)/python -m pytest $(ARGS)

# The repository is the package, so the type checker needs a folder in which it is called scrimp.
lint: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	cd $(VENV)/types && MYPYPATH=. ../bin/mypy --config-file ../../setup.cfg -p scrimp

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
