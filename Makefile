# What README calls "the two commands" are `make demo` and `make test`.

CARGO ?= cargo
OUT ?= results
# Where cargo builds, as it decides itself.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The program that targets below run. Whoever names one has built it.
ifdef INCAST
RELEASE =
else
INCAST := $(TARGET)/release/incast
RELEASE = $(CARGO) build --release --locked -p incast
endif
# Seconds for each of the four fuzz targets.
FUZZ ?= 300
# Seconds of `make soak`.
SOAK ?= 3600

.PHONY: all needs demo examples packages reproducible test test-quick test-hosts hosts lint bench fuzz soak sanitize validate docs install generate instructions mutations clean

all: demo

## The first comparisons: builds a release binary, runs DCTCP against CUBIC on a fat-tree, then the five systems of the papers.
demo: needs
	$(RELEASE)
	$(INCAST) run scenarios/first-light.toml --out $(OUT) --force
	$(INCAST) run scenarios/five-papers.toml --out $(OUT) --force

# One line that names all that is missing, instead of the first error of a compiler.
needs:
	@scripts/needs.sh

# Pages whose examples are run.
EXAMPLES := README.md docs/tutorial.md docs/reading-results.md

## Puts into pages what their examples print; CI compares the two.
examples: needs
	$(RELEASE)
	scripts/page-examples.py --update $(INCAST) $(EXAMPLES)

## Every crate as `cargo publish` would upload it, built from that alone: all that it needs is in it.
packages:
	scripts/packages.sh

## Whether two builds of this tree are one file: ten minutes of two processors.
reproducible: needs
	scripts/reproducible.sh

## Every test. As root it installs Debian packages that it lacks, and names them first. Lanes, their order and their limits are in scripts/lanes.py, which runs one of them, too.
test:
	@scripts/debian.sh python3 python3 "what runs the tests"
	scripts/lanes.py test

## For work in between: formatting, the structure of the source, and the unit tests of all crates of the simulator.
test-quick:
	$(CARGO) fmt --all --check
	$(CARGO) test --locked --quiet --lib --test imports

## The part of `test` that is about real hosts (deploy/README.md): module, BPF object, QUIC, each in a short form.
test-hosts:
	scripts/lanes.py hosts

## A real kernel beside the simulator (docs/hosts.md), then every rig in its long form. All of them run, whatever fails: 36
## minutes on two busy processors, about an hour more for On-Ramp's, and half an hour for kernels the first time.
hosts:
	scripts/each.sh \
	    "rigs/compare/run.sh --rig rigs/virtual-time/rig.py --jobs $$(nproc) --out $(OUT)/hosts scenarios/hosts/{incast,background,mixed}.toml" \
	    "rigs/compare/run.sh --rig 'rigs/virtual-time/rig.py --emulated' --jobs $$(nproc) --out $(OUT)/hosts scenarios/hosts/{onramp,onramp-clocks}.toml" \
	    "rigs/netns/run.sh --faults" \
	    "rigs/vm/run.sh --faults" \
	    "rigs/vm/run.sh --kernel 6.12" \
	    "rigs/vm/run.sh --kernel 7.2" \
	    "rigs/vm/run.sh --kernel newest" \
	    "rigs/vm/run.sh --onramp --long --kernel newest" \
	    "rigs/vm/run.sh --onramp --long --kernel newest --form qdisc" \
	    "rigs/vm/run.sh --onramp --limits --kernel newest" \
	    "rigs/vm/run.sh --onramp --limits --kernel newest --form qdisc" \
	    "rigs/vm/run.sh --onramp --cost --kernel newest" \
	    "rigs/vm/run.sh --onramp --cost --kernel newest --form qdisc" \
	    "rigs/vm/boot.sh" \
	    "rigs/vm/instructions.sh" \
	    "rigs/virtual-time/run.sh --short" \
	    "rigs/virtual-time/run.sh --seeds 10" \
	    "rigs/virtual-time/run.sh --faults" \
	    "rigs/virtual-time/run.sh --churn" \
	    "deploy/linux/tcp_marimo/package-test.sh" \
	    "deploy/linux/marimoctl/upgrade-test.sh" \
	    "deploy/linux/hostctl/package-test.sh marimoctl" \
	    "deploy/linux/hostctl/package-test.sh onrampctl"

## Formatting, lints, documentation links, licences, what is in the packages.
lint:
	scripts/lanes.py lint

## Fuzzes the readers of files, five minutes each: scenarios, tables, results, other simulators' files (scripts/fuzz.sh).
fuzz:
	scripts/fuzz.sh $(FUZZ)

## Random scenarios in which features meet, for an hour: each ends, conserves bytes, has one digest for every number of
## threads (crates/incast/tests/soak/main.rs). Prints its seed, and writes a scenario file for each finding.
soak:
	INCAST_SOAK=$(SOAK) $(CARGO) test --locked -p incast --test soak -- --nocapture

## Changes lines that the pages of the papers name, one at a time: each has to make its test fail (scripts/traceability.toml).
mutations:
	scripts/traceability.py --mutate

## Tests of the simulator under AddressSanitizer and ThreadSanitizer (docs/unsafe.md).
sanitize:
	scripts/sanitize.sh

## Engine cost on the canonical cases (docs/performance.md).
bench:
	$(RELEASE)
	$(INCAST) bench

## The reference cases of HPCC's ns-3 simulator and of csg-htsim, ours against theirs (docs/validation.md).
validate:
	$(RELEASE)
	$(INCAST) validate --out $(OUT)/validation

## The book, in docs/book, and the reference of the Python package in docs/book/python.
docs: generate
	scripts/tool.sh mdbook mdbook build docs
	scripts/python.sh --reference docs/book/python

## What is generated from the configuration structs and committed: the schema, the reference page and the page of metrics.
generate:
	$(RELEASE)
	$(INCAST) schema > docs/scenario.schema.json
	$(INCAST) schema --reference > docs/scenario-reference.md
	$(INCAST) schema --metrics > docs/metrics.md

install: needs
	$(CARGO) install --locked --path crates/incast

clean:
	$(CARGO) clean
	rm -rf $(OUT) docs/book
