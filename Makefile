# Every target says what it does after ##; make help lists them.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null)
BUILT   := $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.built=$(BUILT)

# What is left out of libraries; see docs/dependencies.md. make deps has the headers that go
# build and go test need without the tags. Programs, tests, checks and packages are compiled
# with the same flags, so that they share what is compiled.
export GOFLAGS := -trimpath -tags=$(shell cat packaging/tags)
export CGO_ENABLED := 1

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
FUZZTIME    ?= 30s
FUZZ        ?=

# How long make soak lasts, and the program it runs: one that is named, one with the
# race detector where RACE is set, and else that of this machine's package.
SOAK          ?= 3m
PERCH_PROGRAM ?=
RACE          ?=

.PHONY: help deps page build speech run demo test test-all check docs fuzz translations golden bench soak deb deb-speech test-peers test-speech test-arm64 image test-image app container test-container release clean
.DEFAULT_GOAL := help

help: ## lists the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1\t/p' Makefile | expand -t 14

deps: ## installs the Debian packages that building, running and testing need
	@packaging/deps.sh

page: deps ## bundles the page for browsers, where its sources have changed
	@gateway/owner/web/bundle.sh

# go list fetches modules without a line for each; where it cannot, go build says why.
build: page ## builds bin/perch and bin/perch-tools
	@echo "building bin/perch and bin/perch-tools; the first time takes some minutes"
	@go list -deps ./cmd/perch ./firmware-tools >/dev/null 2>&1 || true
	@go build -ldflags '-s -w $(LDFLAGS)' -o bin/perch ./cmd/perch
	@go build -o bin/perch-tools ./firmware-tools

# The libraries lie beside the program, which looks for them there.
speech: deps ## builds bin/perch-speech/perch-speech with its libraries; the first time downloads 33 MB
	@echo "building bin/perch-speech"
	@go build -ldflags '-s -w $(LDFLAGS) "-extldflags=-Wl,-rpath,$$ORIGIN"' -o bin/perch-speech/perch-speech ./cmd/perch-speech
	@cp -f $$(go list -m -f '{{.Dir}}' github.com/k2-fsa/sherpa-onnx-go-linux)/lib/$$(uname -m)-unknown-linux-gnu/libsherpa-onnx-c-api.so \
		$$(go list -m -f '{{.Dir}}' github.com/k2-fsa/sherpa-onnx-go-linux)/lib/$$(uname -m)-unknown-linux-gnu/libonnxruntime.so bin/perch-speech/

run: build ## runs the appliance here until Ctrl-C, with its data in ./data; the page is at http://127.0.0.1:8004/
	bin/perch serve

demo: build ## starts the appliance and lets a simulated robot talk with it
	@firmware-tools/demo.sh

# The slowest packages begin first. Many of their tests wait, for somebody to have spoken or for
# a program to start, so that more packages run at once than there are processors.
PACKAGES := ./cmd/perch/... ./packaging ./gateway/owner/web ./gateway/... ./...

test: page ## runs every test that takes no minute; prints those it skips and the ten slowest
	@packaging/deps.sh app
	go build ./...
	packaging/test.py -short -vet=off -p 4 -parallel 8 -shuffle=on -timeout 10m $(PACKAGES)

# These compute, several times as long under the race detector, or are about programs that it does not look into.
LONG := TestPackages|TestSpeechPackages|TestPage|TestPageInFirefox|TestPowerCuts|TestOurOwnVoiceDoesNotInterruptUs|TestWhatIsUnderstood|TestSpokenAnswers|TestOurVoiceNeverInterruptsUs|TestTroubleOnTheWayNeverInterruptsUs|TestAPersonInterruptsUs|TestEveryPageZeroed|TestEveryPageZeroedWhileItRuns

test-all: page ## runs every test, under the race detector but for those that compute or build for minutes
	@packaging/deps.sh deb browser app release
	packaging/test.py -v -vet=off -timeout 20m -run '^($(LONG))$$' ./packaging $$(git grep -lE '^func ($(LONG))\(' '*_test.go' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)
	go build -race ./...
	packaging/test.py -race -vet=off -p 3 -parallel 8 -shuffle=on -timeout 20m -skip '^($(LONG))$$' $(PACKAGES)

check: page ## formatting, vet, staticcheck, tidy modules, methods that are linked, types of the page, links between pages
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	GOBIN=$(CURDIR)/bin go install $(STATICCHECK)
	bin/staticcheck ./...
	go mod tidy -diff
	packaging/methods.sh
	packaging/docs.py
	go run ./cmd/perch/drivers/manual -check
	gateway/owner/web/ui/node_modules/.bin/tsc -p gateway/owner/web/ui
	GOFLAGS=-trimpath go build ./voice

docs: ## writes what the drivers of engines and avatar programs declare into docs/engines.md and docs/relays.md
	go run ./cmd/perch/drivers/manual

fuzz: deps ## runs every fuzz target, or those with FUZZ in their name, for FUZZTIME (30s)
	@firmware-tools/fuzz.sh $(FUZZTIME) "$(FUZZ)"

translations: ## prints what each language lacks, which is shown in English
	@go test -count=1 -v -run '^Test(Translations|Labels)$$' ./language ./cmd/perch/config | sed -n 's/^ *[a-z]*_test.go:[0-9]*: //p'

golden: deps ## rewrites the transcripts of gateway/robot, agent/realtime and ota and shows what has changed in them
	PERCH_GOLDEN=rewrite go test -count=1 -run '^Test(CheckIn|Wire)?Transcripts$$' ./gateway/robot ./agent/realtime ./ota
	@git --no-pager diff --stat -p -- gateway/robot/testdata agent/realtime/testdata ota/testdata
	@git ls-files -o --exclude-standard -- gateway/robot/testdata agent/realtime/testdata ota/testdata

bench: build ## measures the appliance and holds it to its goals; see docs/performance.md
	@go run ./firmware-tools/bench -only '$(ONLY)' -load '$(LOAD)' -count $(or $(COUNT),1) $(if $(PROFILE),-profile) $(if $(KEEP),-keep) $(if $(ALL),-all)
	@$(if $(BASE),go run $(BENCHSTAT) $(BASE) bin/bench.txt)

deb: deps ## builds the Debian packages into dist; ARCHITECTURES=arm64 builds for one
	@packaging/deps.sh deb
	packaging/deb.sh dist $(ARCHITECTURES)

deb-speech: deps ## builds the Debian packages of perch-speech and of its English voice into dist, and downloads that voice (58 MB)
	@packaging/deps.sh deb
	PERCH_PACKAGES="perch-speech perch-speech-voice-en" packaging/deb.sh dist $(ARCHITECTURES)

test-peers: deps ## runs a real Home Assistant and real speech servers beside Perch; see docs/peers.md
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target test-peers-homeassistant test-peers-speech

# Downloads wait for the network, and Home Assistant for talks, so that everything fits into ten minutes side by side.
.PHONY: test-peers-homeassistant test-peers-speech install-homeassistant install-speech
test-peers-homeassistant test-peers-speech: test-peers-%: build install-%
	packaging/peers/$*.py
install-homeassistant install-speech: install-%:
	packaging/peers/$*.py install

test-speech: deps ## runs perch-speech with real voices and a real recognizer, which it downloads (130 MB); takes some minutes
	packaging/speech.sh bin/speech-models
	PERCH_SPEECH_MODELS=$(CURDIR)/bin/speech-models go test -count=1 -timeout 30m -v -run '^TestReal' ./cmd/perch-speech

test-arm64: deps ## runs the arm64 package on an emulated machine; takes minutes, as root
	@packaging/deps.sh deb arm64
	packaging/arm64.sh

image: deps ## makes the image for a Raspberry Pi's card in dist; takes half an hour
	@packaging/deps.sh deb image
	packaging/image/build.sh dist

test-image: image ## boots that image on an emulated machine, also with power cuts; takes an hour
	PERCH_IMAGE=$$(ls -t $(CURDIR)/dist/perch-pi_*.img | head -n 1) go test -count=1 -timeout 0 -v ./packaging/image

app: ## makes the repository of the app of Home Assistant in dist; IMAGE names the container image
	@packaging/homeassistant/app.sh dist

container: deps ## makes the container image for arm64 and amd64 in dist; takes some minutes
	@packaging/deps.sh deb container
	packaging/container/build.sh dist $(ARCHITECTURES)

test-container: container ## runs that image, read-only and without root
	PERCH_CONTAINER=$$(ls -t $(CURDIR)/dist/perch-container_*.oci.tar | head -n 1) go test -count=1 -timeout 10m -v ./packaging/container

release: deps ## makes release VERSION, signed, with an apt repository, in dist/release
	@packaging/deps.sh deb container image release
	@packaging/release/build.sh "$(if $(findstring command,$(origin VERSION)),$(VERSION))"

soak: deps ## runs the whole appliance with a fault every few seconds, for SOAK (3m)
	@packaging/deps.sh deb
	program=$(abspath $(PERCH_PROGRAM)); \
	if [ -n "$(RACE)" ]; then gateway/owner/web/bundle.sh && go build -race -o bin/perch-race ./cmd/perch || exit 1; program=$(CURDIR)/bin/perch-race; fi; \
	if [ -z "$$program" ]; then program=$$(packaging/unpacked.sh); fi; \
	SOAK=$(SOAK) PERCH_PROGRAM=$$program go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./cmd/perch/e2e

clean: ## removes what was built
	rm -rf bin dist gateway/owner/web/ui/node_modules
	git clean -qfdX gateway/owner/web/dist
