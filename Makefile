# The commands of this project. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help run reset read test test-aws lint bench

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

run: ## Build and start the whole service on this machine (PORT=8402)
	@echo "building (the first time takes some minutes; see the README)"
	@cargo build --package local
	@"$$(local/target-dir.sh)/debug/agora-local"

reset: ## Forget the local state: database, chain, results (also while it runs: stops it first)
	@local/reset.sh

read: ## Pay for a page and read it with a stock client: make read URL=http://...
	@local/read.sh "$(URL)"

test: ## Everything a newcomer needs to trust the build
	cargo build --package local
	cargo test --workspace

test-aws: ## The same journeys and the store suites against an independent implementation of AWS
	@local/test-aws.sh

lint: ## Formatting, and clippy with warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

bench: ## Costs as ratios: verification, the 402 answer, cold start, database units
	@local/bench.sh

-include sam.mk
