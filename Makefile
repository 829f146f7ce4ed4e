# Nothing but Go, make and git is needed to build, test and run the demo. `make` alone says what there is.

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS   := -s -w -X github.com/loopkeeper/loopkeeper/cmd/loopkeeper/cli.version=$(VERSION)
GOBUILD   := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
TOOLS     := .cache/tools

# The race detector links against C. It runs wherever that works, which is more than having a compiler without headers.
RACE := $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && echo '\#include <stdlib.h>' | $$(go env CC) -E - >/dev/null 2>&1 && echo -race)

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/loopkeeper and bin/fakeollama, static
	$(GOBUILD) -o bin/ ./cmd/loopkeeper ./cmd/fakeollama

.PHONY: demo
demo: build ## Run a batch and a plan over two workers on this machine, and stop everything again
	bin/loopkeeper demo

# What draws its crashes and restarts runs in part with the race detector, and whole without it, which is much faster.
RANDOM_TESTS := TestAThousandRestartsAtRandomPointsChangeNothing|TestAnythingAndCrashes|TestChecksKeepTheirPlaceOverCrashes

.PHONY: test
test: ## Run the whole test suite
	go test $(RACE) -timeout 15m ./...
	go test -timeout 10m -run '^($(RANDOM_TESTS))$$' ./coordinator/engine ./coordinator/script -full
	@.ci/left-out '$(RACE)'

.PHONY: test-stories
test-stories: ## Run the stories with the race detector in every command, not only in daemons and what follows a run
	go test $(RACE) -timeout 30m ./cmd/loopkeeper/cli -run '^TestStories$$' -raced

.PHONY: test-ollama
test-ollama: ## Run the tests that need a real Ollama server, built once into a cache
	.ci/test-ollama $(RACE)

.PHONY: generate
generate: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc ## Write the Go code of the .proto files
	cd proto && PATH='$(CURDIR)/$(TOOLS)':"$$PATH" ../$(TOOLS)/buf generate

.PHONY: lint
lint: $(TOOLS)/staticcheck $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc ## Check format, vet, staticcheck, the .proto files and their Go code
	.ci/lint $(TOOLS)

.PHONY: bench
bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-placement
bench-placement: ## Simulate the placement against other policies; write docs/placement.md and the README's table
	go test ./scheduler/simulation -run '^Test(Thresholds|Pinned)$$' -count 1 -timeout 30m -table '$(CURDIR)/docs/placement.md'
	go test ./cmd/loopkeeper -run '^TestReadme' -count 1 -update

.PHONY: bench-durability
bench-durability: ## Measure what durability costs, in memory and in time; write docs/durability.md
	go test ./cmd/loopkeeper/durable -run '^$$' -bench . -benchtime 5x -count 1 -timeout 60m -table '$(CURDIR)/docs/durability.md'

.PHONY: bench-loop
bench-loop: ## Play the benchmark of the loop with a simulated model; write docs/loop-benchmark.md and the README's table
	GOGC=1000 go test ./cmd/loopkeeper/relay/player -run '^TestPage$$' -count 1 -timeout 30m -page '$(CURDIR)/docs/loop-benchmark.md'
	@sed -n '/^<!-- loop/,/^<!-- .loop/p' docs/loop-benchmark.md

FUZZTIME ?= 30s

# On a busy machine go test ends a fuzz target at times with "context deadline exceeded" and no input that fails: it is run again.
.PHONY: fuzz-hwprobe
fuzz-hwprobe: ## Run each fuzz target of the hardware probe for FUZZTIME, 30s unless told otherwise
	@set -e; for package in $$(go list ./hwprobe/...); do \
		found=$$(go test -list '^Fuzz' $$package); \
		for target in $$found; do \
			case $$target in Fuzz*) \
				echo "fuzz $$package $$target"; \
				for try in first second; do \
					if said=$$(go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package 2>&1); then break; fi; \
					case $$try$$said in first*"context deadline exceeded"*) continue;; esac; \
					echo "$$said"; exit 1; \
				done; \
				echo "$$said" | tail -1;; \
			esac; \
		done; \
	done

# The fuzzing processes share one server, and it answers one at a time.
.PHONY: fuzz-schema
fuzz-schema: ## Fuzz what is sent for any JSON Schema for FUZZTIME, then a real Ollama with it for as long, where it can be built
	go test -run '^$$' -fuzz '^FuzzFormat$$' -fuzztime $(FUZZTIME) ./proto/structure
	@binary=$$(.ci/ollama) || { code=$$?; [ $$code -eq 3 ] && echo "fuzz-schema: the part with a real Ollama is left out (see above)" && exit 0; exit $$code; }; \
	[ -z "$$binary" ] || LOOPKEEPER_TEST_OLLAMA=$$binary go test -run '^$$' -fuzz '^FuzzFormatOnServer$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 5x -parallel 1 ./worker/ollama/formats

.PHONY: dist
dist: ## Cross-build every platform into dist/, with SHA256SUMS
	rm -rf dist && mkdir dist
	@set -e; for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} suffix=; \
		if [ $$os = windows ]; then suffix=.exe; fi; \
		echo "build $$platform"; \
		GOOS=$$os GOARCH=$$arch $(GOBUILD) -o dist/loopkeeper-$$os-$$arch$$suffix ./cmd/loopkeeper; \
	done
	cd dist && { sha256sum loopkeeper-* 2>/dev/null || shasum -a 256 loopkeeper-*; } > SHA256SUMS

.PHONY: clean
clean: ## Remove what was built here; the real Ollama stays in its cache
	rm -rf bin dist .cache

# The tools live in two modules of their own and are built again when a version there changes.
$(TOOLS)/buf: proto/tools.mod proto/tools.sum
	go build -modfile=proto/tools.mod -o $@ github.com/bufbuild/buf/cmd/buf

$(TOOLS)/protoc-gen-go: .ci/tools.mod .ci/tools.sum
	go build -modfile=.ci/tools.mod -o $@ google.golang.org/protobuf/cmd/protoc-gen-go

$(TOOLS)/protoc-gen-go-grpc: .ci/tools.mod .ci/tools.sum
	go build -modfile=.ci/tools.mod -o $@ google.golang.org/grpc/cmd/protoc-gen-go-grpc

$(TOOLS)/staticcheck: .ci/tools.mod .ci/tools.sum
	go build -modfile=.ci/tools.mod -o $@ honnef.co/go/tools/cmd/staticcheck
