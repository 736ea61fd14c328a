# Everything a person or a machine does here is a target; `make` lists them.
# Needs make, git and Python 3.11 or later; every other tool is installed into .venv and .local/envs on demand.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; PYTHON=... chooses another one.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON_VERSION := $(shell $(or $(PYTHON),false) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)

# Settings of pip count for uv too: its index, its certificates, and those of the system.
export UV_SYSTEM_CERTS ?= true
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

ENVS := .local/envs
UV := $(ENVS)/uv/bin/uv
# Holds the Python's version in its name, so that a new Python remakes the environment.
MADE := .made-with-$(PYTHON_VERSION)
CLOUD_ENVS := $(ENVS)/sam/$(MADE) $(ENVS)/ministack/$(MADE)
PORT ?= 4566
EVENT ?= events/$(FUNCTION).json
LOCKS := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
LOCK_FILES := layers/knowledge/requirements.txt layers/embedded/requirements.txt requirements-dev.txt \
	$(foreach name,uv sam ministack,tools/requirements-$(name).txt)

.PHONY: help
help:  ## list the targets
	@grep -hE '^[.a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: .venv
.venv: .venv/$(MADE)  ## make or update the development environment (every target does so by itself)

# Running it

LOCAL_CLOUD = .venv/bin/python -m tools.local_cloud
# NAME=x as --name "x", if the command line gave it: some systems have a variable NAME.
AS_OPTION = $(if $(filter command,$(origin $(1))),--$(shell echo $(1) | tr A-Z a-z) "$($(1))")
IN_STORE = $(if $(STORE),--store "$(STORE)")

.PHONY: run
run: .venv/$(MADE) $(CLOUD_ENVS)  ## start everything on this machine and show requests until Ctrl-C (PORT=4566, STORE=opensearch)
	@exec $(LOCAL_CLOUD) run --port $(PORT) $(IN_STORE)

.PHONY: stop
stop: .venv/$(MADE)  ## end what `make run` started, from another terminal or after a crash
	@$(LOCAL_CLOUD) stop

.PHONY: token
token: .venv/$(MADE)  ## make a bearer token: NAME=ci-agent (ROLE=reader, EXPIRES=90d; DO=list, rotate, revoke; TABLE=... of a stack)
	@$(if $(TABLE),,$(LOCAL_CLOUD) exec --port $(PORT)) .venv/bin/python -m tools.token $(if $(TABLE),--table "$(TABLE)") \
		$(or $(DO),create) $(foreach option,NAME ROLE EXPIRES GRACE,$(call AS_OPTION,$(option)))

.PHONY: invoke
invoke: .venv/$(MADE)  ## call one handler in this process: FUNCTION=lookup (EVENT=events/lookup.json, DEBUG=1: pdb)
	@$(LOCAL_CLOUD) invoke $(if $(DEBUG),--debug) "$(FUNCTION)" "$(EVENT)"

.PHONY: reindex
reindex: .venv/$(MADE) $(CLOUD_ENVS)  ## build the local cloud's index anew and change over (CHANGED=1, SETTINGS="EMBEDDER=...")
	@$(LOCAL_CLOUD) exec --port $(PORT) .venv/bin/python -m tools.reindex $(if $(CHANGED),--changed) $(SETTINGS)

.PHONY: doctor
doctor: .venv/$(MADE) $(CLOUD_ENVS)  ## how bucket, table, queue, catalog and vectors are, and where they differ (FIX=1: repair)
	@$(LOCAL_CLOUD) exec --port $(PORT) .venv/bin/python -m tools.doctor $(if $(FIX),--fix)

.PHONY: sam-local
sam-local: .venv/$(MADE) $(ENVS)/sam/$(MADE)  ## run one function in Lambda's container: FUNCTION=lookup (EVENT=events/lookup.json)
	@$(LOCAL_CLOUD) sam-local "$(FUNCTION)" "$(EVENT)"

.PHONY: sam-local-all
sam-local-all: .venv/$(MADE) $(CLOUD_ENVS)  ## every function in Lambda's container, its answers checked
	$(LOCAL_CLOUD) exec --port $(PORT) .venv/bin/pytest -m container $(ARGS)

.PHONY: opensearch
opensearch: .venv/$(MADE)  ## start a real OpenSearch node on this machine, or say where it runs (PORT=9200, DO=stop, DO=wipe)
	@.venv/bin/python -m tools.opensearch_node $(or $(DO),start $(if $(filter file,$(origin PORT)),,--port $(PORT)))

.PHONY: build
build: .venv/$(MADE) $(ENVS)/sam/$(MADE)  ## build the stack for Lambda into .aws-sam/build, ready for `sam deploy`
	@$(LOCAL_CLOUD) build

# Proving it

.PHONY: format
format: .venv/$(MADE)  ## format the code and mend what ruff can mend
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

.PHONY: check
check: .venv/$(MADE)  ## format, lint, types, import contracts, template, locks
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/cfn-lint template.yaml
	@rm -rf .local/locks && mkdir -p $(addprefix .local/locks/,$(sort $(dir $(LOCK_FILES))))
	@for lock in $(LOCK_FILES); do cp $$lock .local/locks/$$lock; done
	@$(MAKE) lock LOCKS_IN=.local/locks/ >/dev/null
	@for lock in $(LOCK_FILES); do cmp $$lock .local/locks/$$lock || { echo "run: make lock" >&2; exit 1; }; done

.PHONY: test
test: .venv/$(MADE)  ## every test that needs neither network nor the local cloud
	.venv/bin/pytest -m "not e2e and not bench and not built and not container" $(ARGS)

.PHONY: e2e
e2e: .venv/$(MADE) $(CLOUD_ENVS)  ## the deployed stack on the local cloud, over HTTP and S3 (STORE=opensearch); then the built layers
	$(LOCAL_CLOUD) build
	$(LOCAL_CLOUD) exec --port $(PORT) $(IN_STORE) .venv/bin/pytest -m "e2e or built" $(ARGS)

.PHONY: bench
bench: .venv/$(MADE) $(CLOUD_ENVS)  ## measure beside named baselines: JSON=out.json (.local/bench), SETS="folder ..." of real documentation
	$(LOCAL_CLOUD) exec --port $(PORT) .venv/bin/pytest tests/bench -m bench \
		$(if $(JSON),--json "$(JSON)") $(if $(SETS),--sets "$(SETS)") $(ARGS)

.PHONY: eval
eval: .venv/$(MADE)  ## measure answers beside plain search: SETS="folder ..." (the seed), JSON=out.json, STORE=opensearch
	@.venv/bin/python -m tools.eval $(SETS) $(if $(JSON),--json "$(JSON)") $(if $(STORE),--store "$(STORE)")

.PHONY: clean
clean:  ## remove environments, builds and the local cloud with its state
	@[ ! -x .venv/bin/python ] || $(LOCAL_CLOUD) stop
	rm -rf .venv .local .aws-sam

.PHONY: lock
lock: $(UV)  ## write the locks again from what pyproject.toml asks for (UPGRADE=1: newest versions)
	$(LOCKS) $(if $(UPGRADE),--upgrade) layers/knowledge/pyproject.toml -o $(LOCKS_IN)layers/knowledge/requirements.txt
	$(LOCKS) $(if $(UPGRADE),--upgrade) layers/embedded/requirements.in -o $(LOCKS_IN)layers/embedded/requirements.txt
	$(LOCKS) $(if $(UPGRADE),--upgrade) --group dev layers/knowledge/pyproject.toml layers/embedded/requirements.in \
		-c layers/knowledge/requirements.txt -c layers/embedded/requirements.txt -o $(LOCKS_IN)requirements-dev.txt
	for name in uv sam ministack; do \
		$(LOCKS) $(if $(UPGRADE),--upgrade) --group $$name -o $(LOCKS_IN)tools/requirements-$$name.txt; done

# Environments, remade when their lock or the Python changes.

$(UV): tools/requirements-uv.txt
	@[ -n "$(PYTHON_VERSION)" ] || { echo "Python 3.11 or later is needed; none was found. Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(ENVS)/uv
	$(ENVS)/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/$(MADE): requirements-dev.txt layers/knowledge/pyproject.toml $(UV)
	[ -e $@ ] || $(UV) venv --quiet --clear --python $(PYTHON) .venv
	$(UV) pip sync --quiet --require-hashes --python .venv requirements-dev.txt
	$(UV) pip install --quiet --no-deps --no-build-isolation --python .venv --editable layers/knowledge
	@touch $@

$(ENVS)/%/$(MADE): tools/requirements-%.txt $(UV)
	[ -e $@ ] || $(UV) venv --quiet --clear --python $(PYTHON) $(@D)
	$(UV) pip sync --quiet --require-hashes --python $(@D) $<
	@touch $@
