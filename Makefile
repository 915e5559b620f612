# Manyheads: everything a fresh machine needs is `make demo` and `make test`.

PYTHON ?= python3
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format full bench parity lab wheel clean
# What Python compiles is kept: tests start many processes of it.
unexport PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE

# Never install without the constraints, nor past the script: PyPI's torch for Linux brings CUDA,
# gigabytes. The script takes the CPU build or stops; CUDA=1 lets it be installed.
PIP := -m pip install --quiet --disable-pip-version-check
INSTALL := scripts/install.py $(if $(CUDA),--cuda)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed ## train a translator and a classifier, show what they look at
	.venv/bin/python examples/demo.py

# A process per core; the tests of a file stay together, as they share what is made for them.
test: check ## every check and the tests
	.venv/bin/python -m pytest -n auto --dist loadfile

check: .venv/.installed ## formatting, lint, types, layers, changelog
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/python scripts/check_changelog.py

format: .venv/.installed ## format the code and mend what can be mended
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

# Hypothesis draws new examples here, and the same ones in `make test`.
full: check ## every check and all tests, the slow ones too
	.venv/bin/python -m pytest -m "full or not full" --timeout 3600 --hypothesis-profile new

bench: .venv-bench/.installed ## measure against other libraries; ARGS="..." is passed on
	.venv-bench/bin/python -m benchmarks $(ARGS)

parity: .venv-bench/.installed ## compare results with other libraries; ARGS as above
	.venv-bench/bin/python -m benchmarks.parity $(ARGS)

lab: .venv/.installed ## run the experiments whose result is missing in docs/lab (hours); ARGS="names"
	.venv/bin/python scripts/labs.py $(ARGS)

wheel: .venv/.installed ## build dist/*.whl
	.venv/bin/python -m build --wheel --no-isolation

clean: ## remove what make made: environments, builds, caches, the demo's pictures
	rm -rf .venv .venv-bench dist demo
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples scripts -type d -name __pycache__ -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml constraints.txt
	@echo "Setting up .venv (minutes the first time: torch is large) ..."
	$(call new-environment,.venv)
	.venv/bin/python $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@

# These peers come without dependencies: torchvision, which the others ask for, does not fit the CPU
# build of torch, and captum would bring another torch.
.venv-bench/.installed: pyproject.toml constraints.txt constraints-bench.txt
	@echo "Setting up .venv-bench (minutes the first time) ..."
	$(call new-environment,.venv-bench)
	.venv-bench/bin/python $(INSTALL) -c constraints.txt -c constraints-bench.txt -e '.[all,bench]'
	.venv-bench/bin/python $(PIP) --no-deps -c constraints-bench.txt timm torchvision vit-pytorch einops captum
	@touch $@

define new-environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Manyheads needs Python 3.11 or newer, for example: make PYTHON=python3.12 ..."; exit 1; }
$(PYTHON) -m venv $1
$1/bin/python $(PIP) -c constraints.txt --upgrade pip
endef
