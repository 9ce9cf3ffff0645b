# Works with GNU make 3.81 and a POSIX shell: `make help` lists the targets.

MODULE   := github.com/seed-6f6f2c11/duly
CACHE    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/duly
VERSION   = $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
FUZZTIME ?= 30s
PART     ?= 1/1
# The lowest coverage, in percent, of the packages that decide and store.
COVERAGE ?= 85

# The linter is built once for each version that tools/go.mod names.
LINT_PKG     := github.com/golangci/golangci-lint/v2
LINT_VERSION := $(shell awk '$$1 == "$(LINT_PKG)" { print $$2 }' tools/go.mod)
LINT         := $(CACHE)/bin/golangci-lint-$(LINT_VERSION)

# Both are built from the Go module proxy when they are first asked for: as parts of tools/go.mod they would bring hundreds of
# modules of their own to everybody who lints.
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.14.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
# What a release has to run on.
PLATFORMS   := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

# The race detector needs a C compiler; without one the tests run all the same.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null 2>&1 && echo -race)
# Put before a command that starts a Redis of its own.
WITH_REDIS = redis=$$(scripts/redis-server.sh) && export DULY_TEST_REDIS_SERVER="$$redis" &&

# The same for tests of the alerts, which are skipped where none can be had.
WITH_PROMETHEUS = DULY_TEST_PROMETHEUS=$$(scripts/prometheus.sh || :) && export DULY_TEST_PROMETHEUS &&

.DEFAULT_GOAL := help
# The steps of check are in an order: tests last.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# Half the work of a compiler, and no libraries of vendors: the quickstart has to start soon, not to run fast.
QUICK := -tags quickstart -gcflags='all=-l -dwarf=false' -ldflags='-s -w'

.PHONY: run
run: ## run the quickstart: a daemon that keeps its tasks in a folder
	@echo 'building bin/quickstart/duly: a minute or two the first time, a moment later on' >&2
	@go build -trimpath $(QUICK) -o bin/quickstart/duly ./cmd/duly
	@bin/quickstart/duly daemon -c examples/quickstart/duly.yaml --store file:bin/quickstart/tasks

.PHONY: build
build: ## build bin/duly
	@echo 'building bin/duly: a minute or two the first time, a moment later on' >&2
	@go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/duly ./cmd/duly

# What the image is for.
IMAGE_PLATFORMS := linux/amd64 linux/arm64

.PHONY: image
image: ## write bin/duly.tar, an image for amd64 and arm64 (an OCI layout), without Docker
	@mkdir -p bin/image
	@for platform in $(IMAGE_PLATFORMS); do \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' \
			-o "bin/image/$${platform#*/}" ./cmd/duly || exit 1; \
	done
	@cd deploy && go run ./image -version "$(VERSION)" -zones "$$(go env GOROOT)/lib/time/zoneinfo.zip" -to ../bin/duly.tar \
		$(foreach platform,$(IMAGE_PLATFORMS),$(platform)=../bin/image/$(notdir $(platform)))
	@echo bin/duly.tar

.PHONY: deploy-test
deploy-test: ## test the image, the Helm chart and the manifests of Kubernetes
	@cd deploy && go vet ./... && go test -timeout 5m ./...

.PHONY: ui-test
ui-test: ## look at the console in Chromium, if there is one: every page and control, with axe-core
	@$(WITH_REDIS) cd adapters/console/browser && go vet . && go test -count=1 -timeout 5m .

.PHONY: ui-shots
ui-shots: ## the same, and write the pictures of docs/ui
	@$(WITH_REDIS) cd adapters/console/browser && go test -count=1 -timeout 5m . -args -shots ../../../docs/ui

.PHONY: gcf-stage
gcf-stage: ## put a Cloud Run function, FUNCTION=examples/cloud-function, as source to deploy, into STAGE=bin/gcf
	@scripts/gcf-stage.sh "$(or $(STAGE),bin/gcf)" $(FUNCTION)

.PHONY: check
check: fmt-check lint tidy-check test-all ## all that a change has to pass, tests last

.PHONY: release-check
release-check: ## what a tag has to pass; RELEASE=1.2.3 also looks for its section in CHANGELOG.md
	@go test -count=1 -run '^Test(Changelog|ReleaseConfiguration|ContinuousIntegration|DocumentsNameWhatExist)' ./internal/house
	@[ -z "$(RELEASE)" ] || grep -q '^## \[$(RELEASE:v%=%)\] - ' CHANGELOG.md || \
		{ echo 'CHANGELOG.md has no section "## [$(RELEASE:v%=%)] - YYYY-MM-DD"' >&2; exit 1; }
	@for platform in $(PLATFORMS); do \
		echo "building duly for $$platform" >&2; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -o /dev/null ./cmd/duly || exit 1; \
	done
	@go run $(GORELEASER) check || \
		{ echo 'goreleaser did not pass, or could not be built: it needs the Go module proxy, and minutes the first time' >&2; exit 1; }

.PHONY: alerts-test
alerts-test: ## try the alerts with promtool, and with a Prometheus that scrapes a daemon, if there is one
	@$(WITH_REDIS) $(WITH_PROMETHEUS) go test -count=1 -timeout 5m -run '^Test(TheAlerts|APrometheus|TheDashboard)' -v ./internal/cli

.PHONY: vuln
vuln: ## look for known vulnerabilities in what duly calls, if govulncheck and its database can be reached
	@scripts/vuln.sh "$(GOVULNCHECK)" "$(CACHE)/bin"

# They are begun first, so that none of them is left alone at the end. Most of their time they wait for processes.
LONGEST := ./internal/cli ./core/redisstore ./internal/proof/sim/world

# Packages that are tested at once: for half of their time they wait for clocks and processes.
AT_ONCE = $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))))

.PHONY: test
test: ## run the tests, the longest cut short or left to make check: about four minutes on two processors
	@$(WITH_REDIS) $(WITH_PROMETHEUS) go test -p $(AT_ONCE) -short -vet=off -parallel 6 -timeout 15m $(LONGEST) $$({ go list $(LONGEST); go list ./...; } | sort | uniq -u)

# Their tests read sources, documents and schedules, and start programs: the race detector would only make them several times as long.
TEXTS := ./internal/house ./internal/proof/sow/... ./internal/proof/guarantees ./internal/cli/reference ./core/schedule ./core/schedule/phrase ./internal/dulyfile

# Without vet, which is one of the linters that `make check` runs before, on the same files. And without the second that the race
# detector waits at the end of each package for what is still running: the tests are over then, and a race is reported when it happens.
.PHONY: test-all
test-all: ## run all tests whole, with the race detector where there is a C compiler
	@$(if $(RACE),:,echo "no C compiler for cgo: testing without -race" >&2)
	@$(WITH_REDIS) $(WITH_PROMETHEUS) go test -vet=off -parallel 4 -timeout 15m $(TEXTS) && \
		GORACE="atexit_sleep_ms=0 $$GORACE" go test $(RACE) -vet=off -parallel 4 -timeout 15m $(LONGEST) $$({ go list $(TEXTS); go list ./...; } | sort | uniq -u)

.PHONY: test-servers
test-servers: ## run the store's tests on each of SERVERS="path1 path2"
	@[ -n "$(SERVERS)" ] || { echo 'name the servers: make test-servers SERVERS="/path/of/redis-server /path/of/valkey-server"' >&2; exit 2; }
	@for server in $(SERVERS); do \
		redis=$$(DULY_TEST_REDIS_SERVER="$$server" scripts/redis-server.sh) || exit 1; \
		echo "== $$server: $$("$$redis" --version)"; \
		DULY_TEST_REDIS_SERVER="$$redis" go test $(RACE) -count=1 -timeout 10m ./core/redisstore || exit 1; \
	done

BEFORE ?= HEAD~1

.PHONY: test-upgrade
test-upgrade: ## run this binary and that of BEFORE=<commit> on one Redis, in both orders
	@dir=$$(mktemp -d) && trap 'git worktree remove --force "$$dir/tree"; rm -rf "$$dir"' EXIT && \
		git worktree add --quiet --detach "$$dir/tree" "$(BEFORE)" && (cd "$$dir/tree" && go build -o "$$dir/duly" ./cmd/duly) && \
		DULY_TEST_BEFORE="$$dir/duly" DULY_TEST_REDIS_SERVER=$$(scripts/redis-server.sh) \
		go test -count=1 -timeout 5m -run TestVersions -v ./internal/cli

.PHONY: proof
proof: ## try all that docs/proof.md tells of, whole, and write its figures; about half an hour. WAYS="torture soak" for some
	@$(WITH_REDIS) go run ./internal/proof/run $(WAYS)

.PHONY: guards
guards: ## take each guard of a promise out of a copy of duly, and see its test fail; writes the table of docs/proof.md
	@$(WITH_REDIS) DULY_TEST_KILLS=all go run ./internal/proof/guards -write

.PHONY: guarantees
guarantees: ## run the tests that docs/guarantees.md names, and print how each promise fares
	@$(WITH_REDIS) go run ./internal/proof/guarantees

FOR ?= 100s
SEED ?= 1

.PHONY: sim
sim: ## play histories in virtual time for FOR=100s from SEED=1 on, and tell the first that breaks a promise
	go run ./internal/proof/sim -seed "$(SEED)" -n 100000000 -for "$(FOR)"

.PHONY: mutants
mutants: ## sow faults into copies of duly, and see that the simulation finds each; writes the table of docs/proof.md
	@$(WITH_REDIS) go run ./internal/proof/sim/mutants -write

.PHONY: kills
kills: ## kill a move to other partitions at each of its commands, where `make test` tries some
	@$(WITH_REDIS) DULY_TEST_KILLS=all go test -count=1 -timeout 20m -run 'TestRepartition(SurvivesKills|IsTakenOver)' -v ./core/redisstore

.PHONY: cron-nightly
cron-nightly: ## compare a million cron times, and all quiet hours, with a minute-by-minute search, and ask providers with quotas for an hour, let alarms serve a week of 10,000 agents, and kill whoever waits, signals or ends tasks with callbacks
	DULY_CRON_CHECKS=1000000 go test -count=1 -timeout 60m -run Oracle -v ./core/schedule
	DULY_CRON_CHECKS=1000000 go test -count=1 -timeout 60m -run TestNoStartInQuietHours -v ./core
	DULY_QUOTA_MINUTES=60 go test -count=1 -timeout 60m -run TestAnAdaptiveLimitFindsAQuota -v ./adapters/daemon
	DULY_ALARM_AGENTS=10000 DULY_ALARM_SEEDS=10000 DULY_SIGNAL_SEEDS=10000 DULY_CALLBACK_SEEDS=100000 go test -count=1 -timeout 60m -run 'TestAFleetThatIs|TestNoWakeUpIsLost|TestASignalIsHeardOnce|TestEachEndIsTold' -v ./core

.PHONY: cover
cover: ## run core's tests, print coverage by package, fail below COVERAGE=85
	@$(WITH_REDIS) go test -timeout 10m -coverpkg=./core/... -coverprofile=coverage.out ./core/...
	@awk -v module=$(MODULE) -v lowest=$(COVERAGE) "$$COVER_TABLE" coverage.out

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME=30s; PART=2/8 runs the second of each eight
	@$(WITH_REDIS) \
	grep -rn --include='*_test.go' '^func Fuzz' . | sed -E 's/^(.*)\/[^/]*:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*/\1 \2/' | sort | \
	awk -v part="$(PART)" 'BEGIN { split(part "/1", p, "/") } (NR - p[1]) % p[2] == 0' | \
	while read -r package target; do \
		scripts/fuzz.sh "$$package" "$$target" "$(FUZZTIME)" </dev/null || exit 1; \
	done

.PHONY: bench
bench: ## run the benchmarks beside the peers and print the table; BENCH="-only life" sets flags
	@$(WITH_REDIS) cd bench && go run . $(BENCH)

.PHONY: bench-json
bench-json: ## the same, as JSON
	@$(WITH_REDIS) cd bench && go run . -json $(BENCH)

.PHONY: bench-instructions
bench-instructions: ## count redis-server's instructions for each task, and compare them with bench/instructions.txt; UPDATE=1 writes it
	@$(WITH_REDIS) cd bench && go run . -instructions instructions.txt $(if $(UPDATE),-update)

# One test for each thing that follows from something else: it compares, and writes with -update. The pages are last, as they are about the others.
GENERATORS := TestTheZonesArePacked|TestTheScriptsArePacked|TestTheDocumentIsPacked|TestThePicturesFollowFromTheCode|TestTheDocumentHasTheRegister|TestDependenciesAreListed

.PHONY: generate
generate: ## write all that follows from something else, and is kept: CONTRIBUTING.md lists it
	@go test -count=1 -run '^($(GENERATORS))$$' \
		./core/schedule ./core/redisstore ./adapters/http ./internal/proof/pictures ./internal/proof/sim/world ./internal/house -update
	@go test -count=1 -run '^(TestThePagesFollowFromTheCode|TestTheHandlersAreDescribed)$$' ./internal/cli/reference -update
	@cd bench && go test -count=1 -run '^TestTheDocumentFollowsFromTheFigures$$' . -update

.PHONY: site
site: ## write the documents as a website into ./site: HTML, one stylesheet, and a search that needs no server
	@cd tools/site && go run . -from ../.. -to ../../site

.PHONY: site-test
site-test: ## look at the website: each link and anchor, each page found from the first, nothing that runs but the search
	@cd tools/site && go vet ./... && go test -count=1 -timeout 5m ./...

.PHONY: bench-test
bench-test: ## see that the benchmarks work, with small sizes
	@$(WITH_REDIS) cd bench && go test -short ./...

.PHONY: lint
lint: $(LINT) ## run the linters
	@"$(LINT)" run --allow-serial-runners ./...

.PHONY: fmt
fmt: $(LINT) ## format the Go code
	@"$(LINT)" fmt ./...

.PHONY: fmt-check
fmt-check: $(LINT)
	@"$(LINT)" fmt --diff ./...

.PHONY: vet
vet: ## run go vet
	go vet ./...

.PHONY: tidy-check
tidy-check:
	@go mod tidy -diff

.PHONY: client-test
client-test: ## generate TypeScript clients from openapi.json, check their types and run them, if npm can be reached
	@go build -o bin/duly ./cmd/duly
	@scripts/client-test.sh adapters/http/openapi.json bin/duly

.PHONY: mcp-test
mcp-test: ## call a daemon by the official clients of MCP and their conformance kit, if npm can be reached
	@go build -o bin/duly ./cmd/duly
	@$(WITH_REDIS) go test -count=1 -tags duly_mcp -run TestModelsReachTheFunction ./sam
	@$(WITH_REDIS) scripts/mcp-test.sh adapters/mcp/official bin/duly

.PHONY: clients
clients: ## build the packages of the clients into bin/clients, install each into a fresh environment and use it
	@scripts/clients.sh "$(or $(CLIENTS_VERSION),0.0.0)" bin/clients

.PHONY: proto
proto: ## write the Go code of gRPC after a change in adapters/http/rpc/proto; needs protoc
	@command -v protoc >/dev/null || { echo 'make proto needs protoc: install protobuf-compiler' >&2; exit 1; }
	@plugins=$$(mktemp -d) && trap 'rm -rf "$$plugins"' EXIT && \
		GOBIN="$$plugins" go install google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go && \
		cd adapters/http/rpc && PATH="$$plugins:$$PATH" protoc -I proto --go_out=. --connect-go_out=. \
		--go_opt=module=$(MODULE)/adapters/http/rpc --connect-go_opt=module=$(MODULE)/adapters/http/rpc,package_suffix= \
		duly/scheduler/v1/scheduler.proto duly/agentmemory/v1/agentmemory.proto

.PHONY: clean
clean: ## remove what was built here; the cache folder stays
	rm -rf bin site coverage coverage.out

$(LINT):
	@echo "building golangci-lint $(LINT_VERSION), once" >&2
	@mkdir -p "$(@D)"
	@cd tools && go build -trimpath -o "$@.$$$$" $(LINT_PKG)/cmd/golangci-lint && mv "$@.$$$$" "$@"

# A block that several test binaries ran stands several times in the profile:
# it counts once, and as covered if any of them ran it.
define COVER_TABLE
FNR > 1 {
	statements[$$1] = $$2
	if ($$3 > 0) ran[$$1] = 1
}
END {
	for (block in statements) {
		package = block
		sub(/\/[^\/]*$$/, "", package)
		sub("^" module "/", "", package)
		all[package] += statements[block]
		if (block in ran) covered[package] += statements[block]
	}
	must["core"]; must["core/memstore"]; must["core/redisstore"]
	for (package in must) all[package] += 0
	for (package in all) {
		percent = all[package] ? 100 * covered[package] / all[package] : 0
		verdict = ""
		if (package in must && percent < lowest) {
			verdict = "below " lowest " %"
			failed = 1
		}
		printf "%-20s %6.1f %%  %s\n", package, percent, verdict | "sort"
	}
	close("sort")
	exit failed
}
endef
export COVER_TABLE
