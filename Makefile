# Fathom. `make` alone lists what there is to make.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
FUZZ_SECONDS ?= 20

# Where cargo builds, wherever it was told to.
target_dir = $(shell $(CARGO) metadata --no-deps --offline --format-version 1 2>/dev/null | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
musl_target = $(shell uname -m)-unknown-linux-musl
# Clippy in rustc's place, as cargo-clippy runs it, where code is compiled anyway: to
# check all dependencies besides would take minutes of each clean clone.
linted = check clippy unit flaky test-guest test-long
$(linted): private export RUSTC_WORKSPACE_WRAPPER = clippy-driver
$(linted): private export CLIPPY_ARGS = -Dwarnings__CLIPPY_HACKERY__

scripts = .ci/run tools/*.sh tools/conformance/*.sh tools/guest/* tools/cluster/*.sh tools/cluster/kubectl

.PHONY: help
help: ## this list
	@echo "Fathom measures storage. make targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

.PHONY: quick
quick: ## build, run the quick series in ./quick, show and record its results
	@tools/setup.sh build quick
	$(CARGO) build --profile quick --no-default-features --locked -p fathom-cli
	@mkdir -p quick
	"$(target_dir)/quick/fathom" --runs quick/fathom-runs quick here quick
	"$(target_dir)/quick/fathom" --runs quick/fathom-runs runs

.PHONY: check
check: fmt ## a minute after a change: formatting, unit tests with clippy, simulated campaigns
	$(CARGO) test --workspace --locked --lib --bins --test campaigns

.PHONY: test
test: setup fmt lint unit docs deny ## everything a change must pass; installs what is missing
	@$(MAKE) -s summary

.PHONY: setup
setup: ## install the Debian packages that the tests need and that are missing
	@tools/setup.sh build quick test lint guest

.PHONY: fmt
fmt: ## check the formatting
	$(CARGO) fmt --all --check

.PHONY: lint
lint: clippy ## clippy and shellcheck, warnings denied; programs that are called stand in tools/programs
	shellcheck -x $(filter-out %.c,$(wildcard $(scripts)))
	tools/check-programs.py
	@tools/version.sh >/dev/null

.PHONY: clippy
clippy:
	$(CARGO) test --workspace --all-targets --locked --no-run

.PHONY: unit
unit: ## all tests, documentation examples included
	@tools/test.sh

.PHONY: flaky
flaky: setup ## the tests five times over beside a load that keeps all processors busy
	@tools/flaky.sh

.PHONY: test-guest
test-guest: setup ## the tests that boot a guest with emulated disks; its parts stay in ~/.cache/fathom-guest
	$(CARGO) test --locked -p fathom-cli --test suite -- guest ledger

.PHONY: test-long
test-long: setup ## tests that take minutes each: zones and preparing a drive in a guest, every I/O on every stack; noted in bench/long.md
	@tools/test-long.sh

# Not among those above: what is exported for a target is exported for what it needs, too,
# "private" or not, and the static binary would be built twice.
.PHONY: test-cluster
test-cluster: setup musl ## a real single-node Kubernetes, and the tests that need one; built once, kept in ~/.cache/fathom-cluster
	@RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ CARGO="$(CARGO)" FATHOM_STATIC="$(target_dir)/$(musl_target)/release/fathom" tools/test-cluster.sh

.PHONY: test-static
test-static: musl ## what the static binary does with nothing but a kernel
	@tools/static.sh "$(target_dir)/$(musl_target)/release/fathom"

.PHONY: test-fio
test-fio: musl ## fio's own tests and job files against the native engine: what docs/CONFORMANCE.md says must hold
	@tools/setup.sh quick test
	tools/conformance/run.py --fathom "$(target_dir)/$(musl_target)/release/fathom" --log "$(target_dir)/tests.fio.log"

.PHONY: summary
summary:
	@tools/test.sh --summary

.PHONY: docs
docs: ## the API documentation, broken links denied
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --workspace --no-deps --document-private-items --locked

.PHONY: deny
deny: ## licences, bans and sources of the dependencies; advisories where they can be fetched
	@tools/deny.sh

.PHONY: musl
musl: ## the static binary
	@tools/setup.sh build static
	rustup target add $(musl_target)
	$(CARGO) build --release --locked -p fathom-cli --target $(musl_target)
	@ls -l "$(target_dir)/$(musl_target)/release/fathom"

.PHONY: dist
dist: ## what is given away, in dist/: tarballs, packages, image, SBOM, licences, sums
	@tools/setup.sh build static dist
	CARGO="$(CARGO)" tools/dist.sh

.PHONY: test-dist
test-dist: ## sums, SBOM, the package in a bare Debian, the tarball; of what make dist has made
	@tools/setup.sh bare dist
	tools/test-dist.sh

.PHONY: pictures
pictures: ## docs/images again, from the program itself
	@tools/setup.sh build quick test
	$(CARGO) build --profile quick --no-default-features --locked -p fathom-cli
	tools/pictures.sh "$(target_dir)/quick/fathom"

.PHONY: install
install: ## binary, man pages and shell completions under DESTDIR and PREFIX
	@tools/setup.sh build
	$(CARGO) build --release --locked -p fathom-cli
	@tools/install.sh "$(target_dir)/release/fathom" "$(DESTDIR)$(PREFIX)"

.PHONY: bench
bench: ## Fathom's own cost, side by side with plain fio; writes bench/results.md and .json
	@tools/setup.sh build quick static test bench
	rustup target add $(musl_target)
	$(CARGO) bench --locked -p fathom-cli --bench cost --target $(musl_target)

.PHONY: bench-engine
bench-engine: ## the native engine beside fio and its t/io_uring, some 13 minutes; as root; writes bench/engine.md and .json
	@tools/setup.sh build quick static ring
	rustup target add $(musl_target)
	$(CARGO) bench --locked -p fathom-cli --bench engine --target $(musl_target)

.PHONY: bench-kills
bench-kills: ## 20 kills of each kind of run on loop devices, some 15 minutes; as root; writes bench/kills.md and .json
	$(CARGO) bench --locked -p fathom-cli --bench kills

.PHONY: bench-verdict
bench-verdict: ## 31 provocations of the verdict beside a busy core, ten times each, and the cost of the evidence: some 25 minutes; as root; writes bench/verdict.md and .json
	$(CARGO) bench --locked -p fathom-cli --bench verdict

.PHONY: bench-ordinary
bench-ordinary: ## pairs of ordinary runs, one beside a busy core: how many findings are false; FATHOM_BENCH_PAIRS=200 take some 60 minutes; as root; writes bench/ordinary.md and .json
	$(CARGO) bench --locked -p fathom-cli --bench ordinary

.PHONY: bench-find
bench-find: ## searches on zram, a throttled loop device and the disk against measuring everything, settings in pairs, some 25 minutes; as root; writes bench/find.md and .json
	@tools/setup.sh build quick static
	rustup target add $(musl_target)
	$(CARGO) bench --locked -p fathom-cli --bench find --target $(musl_target)

.PHONY: bench-cluster
bench-cluster: setup musl ## what a run in a cluster takes beyond its I/O; writes bench/cluster.md and .json
	@CARGO="$(CARGO)" FATHOM_STATIC="$(target_dir)/$(musl_target)/release/fathom" tools/test-cluster.sh --bench

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZ_SECONDS (20); without nightly and cargo-fuzz its seeds only
	@tools/fuzz.sh $(FUZZ_SECONDS)

.PHONY: clean
clean: ## remove what was built
	$(CARGO) clean
	rm -rf fuzz/target
