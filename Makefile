# The targets most people need are `make demo` and `make test`; both work in a fresh clone with Go and git alone.

GO      ?= go
# What the image is called: make image IMAGE=registry.example.com/syncpass:v0.1.0
IMAGE   ?= syncpass:latest

# What `runner render` names where it is not told an image: the published one, as registry/name@sha256:…
RELEASE_IMAGE ?=

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --verify HEAD 2>/dev/null || echo unknown)
ARCH    ?= $(shell $(GO) env GOARCH)
# The time in the image is the commit's, so that building a commit twice gives one image.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

# No paths, no build id and no clock in the binary: the same commit, built by the same compiler, gives the same bytes
# anywhere. The commit is in it, by way of the Go command, which asks git.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -buildid= $(if $(RELEASE_IMAGE),-X main.image=$(RELEASE_IMAGE) )-X main.version=$(VERSION)"

# How many random histories `make model` lives through, and how long `make fuzz` spends on each target.
HISTORIES ?= 200000
FUZZTIME  ?= 30s

# Folders with Go code of this module.
CODE = cmd e2e manifests pass policy record

.DEFAULT_GOAL := help
.PHONY: help build man test test-others test-crashes test-unit model fuzz lint generate control-planes demo up down image bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## bring up two real API servers, sync them, show what happened, take them down
	@$(GO) run ./e2e/playground demo

up: ## the same two API servers, left running; prints the exports to use them
	@$(GO) run ./e2e/playground up

down: ## stop what `make up` started, and remove its data
	@$(GO) run ./e2e/playground down

build: ## bin/runner for this machine, with the links that make it a plugin of kubectl
	$(BUILD) -o bin/runner ./cmd/runner
	ln -sf runner bin/kubectl-syncpass
	ln -sf runner bin/kubectl_complete-syncpass

man: build ## a man page for each verb, in bin/man1
	bin/runner docs man bin/man1

# Tests that talk to API servers wait for them half of the time, so there are more of them at once than processors.
PARALLEL ?= 4

# -count=1: a result from the cache would say nothing about the API servers on this machine. The tests are two processes,
# each with API servers of its own: the crash matrix, which is near half of all there is to do, takes the processor time
# that the others leave.
test: lint control-planes ## everything: lint, then unit, property and scenario tests against real API servers
	@echo "==> go test"
	@tally=$$(mktemp) && trap 'rm -f "$$tally"' EXIT && \
	SYNCPASS_TEST_TALLY="$$tally" $(MAKE) --no-print-directory -j 2 test-others test-crashes && sed 's/^/==> /' "$$tally"

test-others:
	@$(GO) test -count=1 -parallel $(PARALLEL) -timeout 60m -skip '^TestCrashMatrix$$' ./...

# At a low priority, and enough at once to keep the processors busy alone.
test-crashes:
	@nice $(GO) test -count=1 -parallel $$(( $(PARALLEL) + 1 )) -timeout 60m -run '^TestCrashMatrix$$' ./e2e

test-unit: ## the tests that need no API server; seconds
	@$(GO) test -short ./...

# A history of whole passes costs ten times one of the planner's.
model: ## many random histories against the rules: HISTORIES of the planner, a fiftieth of whole passes
	$(GO) test -count=1 -timeout 0 -v -run '^TestModel' ./pass/plan -histories $(HISTORIES)
	$(GO) test -count=1 -timeout 0 -v -run '^TestModel' ./pass -histories $$(( ($(HISTORIES) + 49) / 50 ))

fuzz: ## each fuzz target for FUZZTIME
	@count=0; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' $(CODE) | sort); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$file); do \
			echo "==> $$target of $$(dirname $$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) || exit 1; \
			count=$$((count + 1)); \
		done; \
	done; echo "==> fuzz: $$count targets, $(FUZZTIME) each, 0 failed"

lint: ## gofmt, go vet, staticcheck
	@echo "==> gofmt"
	@unformatted=$$($$($(GO) env GOROOT)/bin/gofmt -l $(CODE)) && if [ -n "$$unformatted" ]; then \
		echo "not formatted; run gofmt -w on:" >&2; echo "$$unformatted" >&2; exit 1; fi
	@echo "==> go vet"
	@$(GO) vet ./...
	@echo "==> staticcheck"
	@$(GO) tool staticcheck ./...

generate: ## the CRDs and the deepcopy functions; a test fails where they are not current
	$(GO) generate ./...

# A step of its own, so that compiling them does not use up the tests' timeout.
control-planes: ## get etcd, kube-apiserver and kube-controller-manager; compiles them the first time
	@echo "==> control planes"
	@$(GO) run ./e2e/playground binaries

image: ## the container image, by Docker or else buildah; asks no registry
	GOOS=linux GOARCH=$(ARCH) $(BUILD) -o bin/linux-$(ARCH)/runner ./cmd/runner
	@if docker info >/dev/null 2>&1; then builder="docker build --platform linux/$(ARCH)"; \
	elif command -v buildah >/dev/null; then builder="buildah bud --platform linux/$(ARCH) --timestamp $(SOURCE_DATE_EPOCH)"; \
	else echo "make image: no Docker engine answers and buildah is not installed; start the one or install the other" >&2; exit 1; fi; \
	set -x; $$builder --target prebuilt --build-arg TARGETARCH=$(ARCH) \
		--build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMAGE) .

bench: control-planes ## what passes cost beside bare API calls and a plain loop; BENCH=quick takes minutes, BENCH_JSON=FILE keeps the numbers
	@$(GO) run ./e2e/bench $(if $(BENCH),-$(BENCH)) $(if $(BENCH_JSON),-json "$(BENCH_JSON)")

clean: ## what was built here; the control planes stay in the user's cache folder
	rm -rf bin
