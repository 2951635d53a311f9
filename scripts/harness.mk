# What the harness does for every Makefile that includes this one. HARNESS is the folder that holds
# shared/ and scripts/.

# With CDPATH set, cd goes to another folder than the one that is named.
unexport CDPATH
# A hook of git has these set, and git would look there in whatever folder it is called: also a test that makes a repository.
unexport GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
# Programs of the harness run here, whatever is built otherwise.
unexport GOOS GOARCH
# Images hold static programs, which are built without cgo. All else is built like them: Go compiles a package once for
# tests, programs and images. Only the race detector needs cgo.
CGO_ENABLED ?= $(if $(findstring -race,$(TEST_FLAGS)),1,0)
export CGO_ENABLED

# The harness runs in its own folder, and a relative KUBECONFIG counts from where the first make was called.
HARNESS_CALLER ?= $(or $(PWD),$(CURDIR))
export HARNESS_CALLER

harness = go -C $(HARNESS)/shared run ./cmd/harness

ifeq (,$(GOAL_STAGES))

.PHONY: doctor
doctor: need-go ## what this machine has and what is missing, and what does not work without it
# It tells of a TMPDIR in which go run cannot run what it builds: so it is itself built elsewhere.
	@temp="$${GOTMPDIR:-$$(go env GOCACHE)}" && mkdir -p "$$temp" && GOTMPDIR="$$temp" $(harness) doctor

.PHONY: cluster
cluster: need-go ## start a cluster, which stays up; CLUSTER=kind or CLUSTER=embedded chooses which
	@$(harness) cluster up

.PHONY: cluster-delete
cluster-delete: need-go ## delete the cluster and everything that belongs to it
	@$(harness) cluster delete

.PHONY: env
env: need-go ## eval "$(make env)" points kubectl at the cluster
	@$(harness) env

.PHONY: kubectl
kubectl: need-go ## download or build kubectl into the cache, if this machine has none or it is too old
	@$(harness) kubectl

.PHONY: engine
engine: ## install and start Docker (Debian and Ubuntu, as root)
	@$(HARNESS)/scripts/engine.sh

.PHONY: node-image
node-image: need-go ## pull the node image of kind, or build it if it cannot be pulled
	@$(HARNESS)/scripts/node-image.sh

endif

# A stage's targets that use the harness need this too.
.PHONY: need-go need-harness
need-harness: need-go
need-go:
	@command -v go >/dev/null 2>&1 || { echo 'go is missing: install Go 1.26 or later from https://go.dev/dl and put it on your PATH' >&2; exit 1; }
	@case "$$(go env GOWORK GOFLAGS | tr '\n' ' ')" in /*-mod=mod*|/*-mod=vendor*|/*-modfile=*) \
		echo "GOFLAGS is $$(go env GOFLAGS), and a workspace takes neither -mod nor -modfile: unset GOFLAGS, or, if you set it by go env -w, go env -u GOFLAGS" >&2; exit 1;; esac
# What was once set by go env -w is in force in each folder.
	@test "$$(go env GO111MODULE)" != off || { \
		echo 'GO111MODULE is off, and all of this is in modules: unset it, or, if you set it by go env -w, go env -u GO111MODULE' >&2; exit 1; }
	@test "$$(go env GOOS GOARCH)" = "$$(go env GOHOSTOS GOHOSTARCH)" || { \
		echo "go builds for $$(go env GOOS)/$$(go env GOARCH), which is not this machine: go env -u GOOS GOARCH" >&2; exit 1; }
