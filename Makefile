# The commands of this project. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help run reset read site browse goal spend tour opt-out network verify sell doctor import-snapshot import-products test quick test-aws rehearse conformance simulate schemathesis lint bench load mail-peers

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

run: ## Build and start the whole service on this machine (PORT=8402)
	@echo "building the service: up to 10 minutes the first time, on two cores; seconds after that"
	@cargo build --package local --bin agora-local
	@"$$(local/target-dir.sh)/debug/agora-local"

reset: ## Forget the local state: database, chain, results (also while it runs: stops it first)
	@local/reset.sh

read: ## Pay for a page and read it with a stock client: make read URL=http://...
	@local/read.sh "$(URL)"

site: ## Build a website: make site BRIEF="A bakery in Lyon. Sourdough 4.50 EUR …" NAME="Four Miche"
	@local/site.sh

browse: ## Do a task in a browser: make browse TASK='Open https://example.com. Read the heading.'
	@local/browse.sh

goal: ## Buy a goal and watch it: make goal OBJECTIVE="Decode the VIN 1HGCM82633A004352. Then verify ada@example.com."
	@local/goal.sh

spend: ## Buy credits, set a budget, mint an access token, and buy with it until the budget says stop
	@local/spend.sh

tour: ## Sell and buy on the marketplace, up to the payout's tokens on the chain; then mail, texts and a call between two agents
	@local/marketplace-tour.sh
	@local/messages-tour.sh

opt-out: ## Who does not want to be found: make opt-out DO="add jane@example.com" (or remove, check, list)
	@cargo run --quiet --package local --bin opt-out -- $(DO)

network: ## Actions of network accounts whose fate is unknown: make network DO="list" (or "list 30", "sent REQUEST", "not-sent REQUEST")
	@cargo run --quiet --package local --bin network-actions -- $(DO)

verify: ## Check an export of receipts offline: make verify EXPORT=receipts.jsonl KEYS=keys.json (or its URL)
	@cargo run --quiet --package local --bin verify-receipts -- "$(EXPORT)" "$(KEYS)"

import-snapshot: ## Keep a copy of a register: make import-snapshot NAME=ofac AS_OF=2026-11-20 FILE=SDN.CSV OTHERS=ALT.CSV
	@cargo run --quiet --package local --bin import-snapshot -- "$(NAME)" "$(AS_OF)" "$(FILE)" $(if $(OTHERS),"$(OTHERS)") $(if $(FORCE),--force)

import-products: ## Sell what a feed lists: make import-products FILE=feed.csv URL=https://shop.example.com CURRENCY=USD
	@cargo run --quiet --package local --bin import-products -- "$(FILE)" $(if $(URL),"--url=$(URL)") $(if $(CURRENCY),"--currency=$(CURRENCY)") $(if $(FORCE),--force)

sell: ## Sell a service of yours: make sell OPENAPI=openapi.json ONLY="listPets,GET /pets/{id}" PRICE=0.01 (or MCP=https://…)
	@cargo run --quiet --package local --bin sell -- $(if $(OPENAPI),"--openapi=$(OPENAPI)") $(if $(MCP),"--mcp=$(MCP)") \
	    $(if $(PRICE),"--price=$(PRICE)") $(if $(ONLY),"--only=$(ONLY)") $(if $(SERVER),"--server=$(SERVER)") \
	    $(if $(PREFIX),"--prefix=$(PREFIX)") $(if $(SECRET),"--secret=$(SECRET)") $(if $(PRIVATE),--private) $(if $(DRY),--dry-run)

doctor: ## Compare how the local stack (or, with TABLE_PREFIX set, a deployment) is set with what it needs
	@local/doctor.sh $(if $(JSON),--json)

test: ## Every test: 35 minutes the first time, 20 after that
	@local/test.sh

quick: ## What you changed: its unit tests, and whether the rest compiles (JOURNEYS=webhooks runs those journeys, too)
	@local/quick.sh

test-aws: ## The same journeys and the store suites against an independent implementation of AWS
	@local/test-aws.sh

rehearse: ## Deploy the template to an emulator that enforces IAM, and run journeys through its gateway
	@local/rehearse.sh

mail-peers: ## E-mail against Postfix and against moto as SES (Postfix: Debian and root, otherwise skipped)
	@cargo build --package local
	@local/mail-peers.sh

# Quiet but for the scores; a check that is not passed any more says which.
conformance: ## The official MCP conformance runner, both revisions, with the scores
	@REQUIRE_CLIENTS=1 cargo test --quiet --package tests --test integration conformance:: -- --ignored --nocapture --test-threads 1

simulate: ## The ledger under attack, for longer: make simulate STEPS=100000 SEED=1
	@SIMULATE_STEPS=$(or $(STEPS),100000) SIMULATE_SEED=$(or $(SEED),20261121) \
	    cargo test --quiet --package tests --test integration simulation:: -- --nocapture >/dev/null

schemathesis: ## The running service against its own description, as a stranger and with credentials
	@cargo build --package local
	@local/schemathesis.sh

lint: ## Formatting, and clippy with warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

bench: ## Costs as ratios: verification, the 402 answer, cold start, finding one of a million souls, reading pages, database units
	@local/bench.sh

load: ## Paid calls of every kind against the release build: what each costs, as ratios to a free one (SECONDS=60, AGENTS=8)
	@LOAD_SECONDS=$(SECONDS) LOAD_AGENTS=$(AGENTS) local/load.sh

# The AWS side. `make sam` validates template.yaml, builds every function as it is deployed, and tries the sample events
# on what was built; `make deploy` deploys by hand, the workflow in .github/ by itself.
#
#   SAM_ARCHITECTURE    arm64 or x86_64; this machine's by default, because foreign ones cannot be tried here
#   CARGO_TARGET_DIR    where to compile, as everywhere
#   DOCKER_HOST         the container engine, if it is not found by itself

ifneq (,$(filter aarch64 arm64,$(shell uname -m)))
SAM_ARCHITECTURE ?= arm64
else
SAM_ARCHITECTURE ?= x86_64
endif

# cargo-lambda comes with the Python package and finds Zig there. A region has to be named even where none is reached.
SAM := PATH="$(CURDIR)/.tools/sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} sam

.PHONY: sam deploy sam-tools sam-validate sam-build sam-invoke

sam: sam-validate sam-build sam-invoke ## Validate the template, build the functions for AWS, invoke every sample event

deploy: ## Build for AWS and deploy by hand: make deploy STAGE=staging (or production; dev if not said)
	@$(MAKE) --no-print-directory sam-build SAM_ARCHITECTURE=$(or $(ARCHITECTURE),arm64)
	$(SAM) deploy --config-env $(or $(STAGE),default)

sam-tools:
	@local/sam/install.sh

sam-validate: sam-tools
	$(SAM) validate --lint

# Where Cargo.toml does not say how to panic, cargo-lambda says abort, and then a bug that a bad request meets takes the
# whole process down instead of answering 500. Nothing in the finished program shows it, so it is looked for here.
sam-build: sam-tools
	@grep -q '^panic = "unwind"' Cargo.toml || { echo 'Cargo.toml: [profile.release] has to say panic = "unwind"' >&2; exit 1; }
	@cargo run --quiet --package local --bin check-settings
	@echo "building for $(SAM_ARCHITECTURE); the first time takes minutes, and shows little"
	$(SAM) build --parameter-overrides Architecture=$(SAM_ARCHITECTURE)
	@.tools/sam/bin/python local/sam/pin.py $(SAM_ARCHITECTURE)
	@for binary in .aws-sam/build/*/bootstrap; do \
	    cp settings.json "$$(dirname "$$binary")/"; \
	    printf '%-22s %9s bytes, %9s zipped\n' "$$(basename "$$(dirname "$$binary")")" "$$(wc -c <"$$binary")" "$$(gzip -9 -c "$$binary" | wc -c)"; \
	done

sam-invoke: sam-tools
	@if [ "$(SAM_ARCHITECTURE)" = "$$(uname -m | sed 's/aarch64/arm64/')" ]; then \
	    .tools/sam/bin/python local/sam/invoke.py; \
	else \
	    echo "built for $(SAM_ARCHITECTURE), which does not run here: \`sam local invoke\` was SKIPPED"; \
	fi
