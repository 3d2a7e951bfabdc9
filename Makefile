# Sets up .venv and runs things in it, on a machine with or without ROS. `make help` lists what.

VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
WHEELS := $(VENV)/.wheels-installed
PACKAGE := $(VENV)/.package-installed
BENCH := $(VENV)/.bench-installed
EXTRAS := formats,lint,robot,sim,tape,test,torch,view,wheels
ARGS ?=
PIP_ARGS ?=

# .venv has its own ROS: a sourced distribution must not mix with it.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export AMENT_PREFIX_PATH := $(VIRTUAL_ENV)
export RMW_IMPLEMENTATION := rmw_fastrtps_cpp
unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE

.DEFAULT_GOAL := help
.PHONY: help venv train-env walk test test-train faults soak pictures bench lint clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 11

venv: $(PACKAGE)  ## set up .venv from constraints/ (PYTHON=... PIP_ARGS=...)

train-env: $(TRAIN)/.installed  ## set up .venv-train, for training: Python 3.12, 8 GB

walk: $(PACKAGE)  ## walk in simulation for 20 s (ARGS='--vx 0.8 --duration 60')
	@$(BIN)/g1-policy walk $(ARGS)

test: $(PACKAGE)  ## run every test (ARGS='-k bundle')
	@$(BIN)/python -m pytest $(ARGS)

test-train: $(TRAIN)/.installed  ## train on the CPU for a moment, in .venv-train: 9 min
	@VIRTUAL_ENV='$(CURDIR)/$(TRAIN)' AMENT_PREFIX_PATH='$(CURDIR)/$(TRAIN)' PYTHONPATH=test \
		$(TRAIN)/bin/python test/training_smoke/record.py $(ARGS)

faults: $(PACKAGE)  ## time to safe of every fault, 20 times each, in real time: 11 min
	@$(BIN)/python test/faults/measure.py --out docs/evidence/faults.json $(ARGS)
	@$(BIN)/python bench/safety_doc.py

soak: $(PACKAGE)  ## random faults for ten minutes: memory flat, no unsafe command, every trip explained
	@$(BIN)/python test/faults/measure.py --soak 600 --out docs/evidence/soak.json $(ARGS)
	@$(BIN)/python bench/safety_doc.py

pictures: $(PACKAGE)  ## make the README's pictures anew (needs chromium and EGL)
	@$(BIN)/python docs/pictures.py

bench: $(BENCH)  ## measure beside a stock node, half an hour (ARGS='--only lateness')
	@$(BIN)/python -m bench $(ARGS)

lint: $(PACKAGE)  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean:  ## remove .venv and everything built; runs/ stays
	rm -rf $(VENV) build install log *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(WHEELS): constraints/venv.txt constraints/data.txt
	@python=$$(PYTHON='$(PYTHON)' sh constraints/find_python.sh) && \
		echo "$(VENV): $$($$python --version), $$python" && $$python -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_ARGS) -c constraints/venv.txt setuptools
	$(BIN)/python -m pip install $(PIP_ARGS) -c constraints/venv.txt --no-build-isolation -e '.[$(EXTRAS)]'
	$(BIN)/python -m pip install $(PIP_ARGS) --no-deps -r constraints/data.txt
	@touch $@

$(BENCH): $(PACKAGE)
	$(BIN)/python -m pip install $(PIP_ARGS) -c constraints/venv.txt --no-build-isolation -e '.[bench]'
	@touch $@

$(TRAIN)/.installed: constraints/train.txt constraints/data.txt setup.py
	@python=$$(PYTHON='$(PYTHON)' sh constraints/find_python.sh 12) && \
		echo "$(TRAIN): $$($$python --version), $$python" && $$python -m venv $(TRAIN)
	$(TRAIN)/bin/python -m pip install $(PIP_ARGS) -c constraints/train.txt setuptools
	$(TRAIN)/bin/python -m pip install $(PIP_ARGS) -c constraints/train.txt --no-build-isolation -e '.[train,wheels]' pytest pytest-timeout
	$(TRAIN)/bin/python -m pip install $(PIP_ARGS) --no-deps -r constraints/data.txt
	@touch $@

$(PACKAGE): $(WHEELS) setup.py setup.cfg
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@
