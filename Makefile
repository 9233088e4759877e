# What README calls "the two commands" are `make demo` and `make test`.

CARGO ?= cargo
OUT ?= results
TOOLS := target/tools
# Seconds for each of the four fuzz targets, in `make test` and in `make fuzz`.
FUZZ_SHORT ?= 6
FUZZ ?= 300
# Seconds of `make soak`.
SOAK ?= 3600

.PHONY: all needs demo examples packages test test-hosts hosts lint bench fuzz soak sanitize validate docs install generate instructions clean

all: demo

## The first comparisons: builds a release binary, runs DCTCP against CUBIC on a fat-tree, then Marimo's published table.
demo: needs
	$(CARGO) build --release --locked -p incast
	target/release/incast run scenarios/first-light.toml --out $(OUT) --force
	target/release/incast run scenarios/marimo/table1.toml --short --out $(OUT) --force

# One line that names all that is missing, instead of the first error of a compiler.
needs:
	@scripts/needs.sh

# Pages whose examples are run.
EXAMPLES := README.md docs/tutorial.md docs/reading-results.md

## Puts into pages what their examples print; CI compares the two.
examples: needs
	$(CARGO) build --release --locked -p incast
	scripts/page-examples.py --update target/release/incast $(EXAMPLES)

## Every crate as `cargo publish` would upload it, built from that alone: all that it needs is in it.
packages:
	scripts/packages.sh

## Every test.
test:
	scripts/debian.sh tshark tshark "the captures of incast trace, read by tshark"
	scripts/debian.sh riscv64-unknown-elf-gcc gcc-riscv64-unknown-elf "marimo.h on a 32-bit RISC-V core"
	scripts/debian.sh qemu-riscv32 qemu-user "marimo.h on a 32-bit RISC-V core"
	scripts/debian.sh clang clang "marimo.h for BPF"
	scripts/debian.sh python3 python3 "the oracle of marimo.h, SciPy, the report in a browser, the Python package"
	scripts/venv.sh
	rigs/virtual-time/build.sh --ahead
	deploy/core/test/run.sh
	$(CARGO) test --locked
	$(CARGO) run --locked -p incast-engine-models
	scripts/instruction-gate.sh
	$(CARGO) build --release --locked --quiet -p incast
	scripts/short-forms.py target/release/incast
	target/release/incast table --check docs/*.md
	scripts/python.sh
	scripts/sanitize.sh --short
	CARGO_PROFILE_DEV_OPT_LEVEL=0 scripts/fuzz.sh $(FUZZ_SHORT)
	scripts/report-browser-test.sh
	$(MAKE) test-hosts

## The part of `test` that is about real hosts (deploy/README.md): module, BPF object, QUIC, each in a short form.
test-hosts:
	deploy/linux/test/run.sh
	deploy/linux/marimoctl/routes-test.sh
	rigs/netns/run.sh
	rigs/vm/run.sh
	rigs/virtual-time/run.sh --ci
	rigs/compare/run.sh --test
	deploy/quic/test/run.sh
	scripts/deploy-crates.sh test --locked

## A real kernel beside the simulator (docs/hosts.md), then every rig in its long form. All of them run, whatever fails: 36
## minutes on two busy processors, and half an hour more for kernels the first time.
hosts:
	scripts/each.sh \
	    "rigs/compare/run.sh --rig rigs/virtual-time/rig.py --jobs $$(nproc) --out $(OUT)/hosts" \
	    "rigs/netns/run.sh --faults" \
	    "rigs/vm/run.sh --faults" \
	    "rigs/vm/run.sh --kernel 6.12" \
	    "rigs/vm/run.sh --kernel 7.2" \
	    "rigs/vm/run.sh --kernel newest" \
	    "rigs/vm/boot.sh" \
	    "rigs/vm/instructions.sh" \
	    "rigs/virtual-time/run.sh --seeds 10" \
	    "rigs/virtual-time/run.sh --faults" \
	    "rigs/virtual-time/run.sh --churn" \
	    "deploy/linux/tcp_marimo/package-test.sh" \
	    "deploy/linux/marimoctl/package-test.sh"

## Formatting, lints, documentation links, licences, what is in the packages.
lint:
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 $$(find crates/incast-cc/src -name "*.rs") docs/examples/halve.rs docs/examples/shortest.rs
	$(CARGO) clippy --all-targets --locked -- -D warnings
	$(CARGO) clippy -p incast-fuzz -p incast-py --locked -- -D warnings
	scripts/deploy-crates.sh clippy --all-targets --locked -- -D warnings
	scripts/packages.sh --list
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked --quiet
	RUSTDOCFLAGS="-D warnings" scripts/deploy-crates.sh doc --no-deps --locked --quiet
	scripts/deny.sh

## Fuzzes the readers of files, five minutes each: scenarios, tables, results, other simulators' files (scripts/fuzz.sh).
fuzz:
	scripts/fuzz.sh $(FUZZ)

## Random scenarios in which features meet, for an hour: each ends, conserves bytes, has one digest for every number of
## threads (crates/incast/tests/soak.rs). Prints its seed, and writes a scenario file for each finding.
soak:
	INCAST_SOAK=$(SOAK) $(CARGO) test --locked -p incast --test soak -- --nocapture

## Tests of the simulator under AddressSanitizer and ThreadSanitizer (docs/unsafe.md).
sanitize:
	scripts/sanitize.sh

## Engine cost on the canonical cases (docs/performance.md).
bench:
	$(CARGO) build --release --locked -p incast
	target/release/incast bench

## The reference cases of HPCC's ns-3 simulator and of csg-htsim, ours against theirs (docs/validation.md).
validate:
	$(CARGO) build --release --locked -p incast
	target/release/incast validate --out $(OUT)/validation

## The book, in docs/book, and the reference of the Python package in docs/book/python.
docs: generate
	scripts/tool.sh mdbook mdbook build docs
	scripts/python.sh --reference docs/book/python

## What is generated from the configuration structs and committed: the schema, the reference page and the page of metrics.
generate:
	$(CARGO) build --release --locked -p incast
	target/release/incast schema > docs/scenario.schema.json
	target/release/incast schema --reference > docs/scenario-reference.md
	target/release/incast schema --metrics > docs/metrics.md

install: needs
	$(CARGO) install --locked --path crates/incast

clean:
	$(CARGO) clean
	rm -rf $(OUT) docs/book
