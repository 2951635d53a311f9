# What a reader types. Nothing is done here: the work is in the stages, in shared/ and in scripts/.
# Needs Go, make (3.81 or later), git and a POSIX shell.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Goals run in the order in which they are named, also with -j: cluster-delete cluster is not cluster cluster-delete.
.NOTPARALLEL:

HARNESS := .
STAGES := $(wildcard 01-informers 02-lolcow 03-flux 04-goop)

# With a stage among the goals, as in `make stage-2 e2e`, all other goals are that stage's own.
GOAL_STAGES := $(filter stage-1 stage-2 stage-3 stage-4,$(MAKECMDGOALS))
ifneq (,$(GOAL_STAGES))

GOAL_STAGE := $(firstword $(GOAL_STAGES))
.PHONY: $(MAKECMDGOALS)
$(GOAL_STAGE): need-go
	@MAKE='$(MAKE)' scripts/stage.sh $(GOAL_STAGE) $(filter-out $(GOAL_STAGE),$(MAKECMDGOALS))
$(filter-out $(GOAL_STAGE),$(MAKECMDGOALS)):
	@:

# With learn as the first goal, as in `make learn run 09a`, the others are its arguments.
else ifeq (learn,$(firstword $(MAKECMDGOALS)))

LEARN_ARGS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(MAKECMDGOALS)
learn: need-go
	@exec scripts/learn.sh $(LEARN_ARGS)
ifneq (,$(LEARN_ARGS))
$(LEARN_ARGS):
	@:
endif

else

.PHONY: learn
learn: need-go ## the exercises, with a check of your code at each save; make learn help lists its commands
	@exec scripts/learn.sh

.PHONY: help
help: ## this list
	@echo 'make stage-2 e2e      test stage 2 on a cluster, which is set up if needed: begin here'
	@echo 'make stage-N TARGET   any target of stage N; make stage-N-TARGET means the same,'
	@echo '                      and make stage-N lists the targets'
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile scripts/harness.mk | \
		while IFS='	' read -r name text; do printf '%-21s %s\n' "make $$name" "$$text"; done

stage-%: need-go
	@rest='$*'; MAKE='$(MAKE)' scripts/stage.sh "stage-$${rest%%-*}" "$${rest#*-}"

.PHONY: test
test: need-go ## unit tests, and tests against a real API server, of every module
	@MAKE='$(MAKE)' scripts/test.sh $(STAGES)

# In make test these run beside others, print what they measure and assert no limit of it.
measured = go -C $(1) test -p 1 -count=1 -v -timeout 30m -run '$(2)' $(3)

.PHONY: measure
measure: need-go ## performance tests with limits, one after the other; the machine should be otherwise idle
	@assets=$$(go -C shared run ./cmd/harness assets) && \
	export KUBEBUILDER_ASSETS="$$assets" MEASURE=1 && failed= && \
	{ $(call measured,01-informers,^TestItKeepsUp$$|^TestPage$$/^KeepsUp$$,./internal/glass) || failed=yes; } && \
	{ $(call measured,04-goop,^TestReconciliationOverFiveThousandNodes$$,./internal/controller) || failed=yes; } && \
	{ $(call measured,04-goop,^(TestManyWorkersInLines|TestManyWorkersInGroups|TestMuchOutput)$$,./internal/plugin) || failed=yes; } && \
	test -z "$$failed"

.PHONY: e2e
e2e: need-go ## test every stage on a cluster; CLUSTER=kind or CLUSTER=embedded chooses which
	@for stage in $(STAGES); do $(MAKE) -C $$stage e2e || exit 1; done

.PHONY: lint
lint: need-go ## golangci-lint over every module, shfmt over the scripts, actionlint
	@scripts/lint.sh

CHECKS := $(patsubst scripts/%.sh,%,$(sort $(wildcard scripts/verify-*.sh)))

.PHONY: verify
verify: $(CHECKS) ## generated files, versions, links, and that each module builds alone

.PHONY: $(CHECKS)
$(CHECKS): need-go
	@scripts/$@.sh
	@echo 'ok   $@'

.PHONY: snippets
snippets: need-go ## update the code in the Markdown files from its source files
	@scripts/verify-snippets.sh -w

.PHONY: docs-test
docs-test: need-go ## run the commands of the chapters; CLUSTER=kind those that need containers, ALL=1 all; CHAPTER=05 one chapter
	@exec env DOCS_CLUSTER=$(or $(CLUSTER),embedded) DOCS_ALL=$(ALL) DOCS_CHAPTER='$(CHAPTER)' go -C scripts/docstest test -count=1 -v -parallel 8 -timeout 80m -run '^TestChapters$$' .

.PHONY: docs-site
docs-site: need-go ## build the chapters as a website in _artifacts/site: open its index.html
	@GOWORK= go run ./scripts/docssite -root .

.PHONY: docs-serve
docs-serve: need-go ## serve the website at http://localhost:8000, with your progress; SERVE=host:port for another address
	@GOWORK= go run ./scripts/docssite -root . -serve $(or $(SERVE),localhost:8000)

.PHONY: docs-site-test
docs-site-test: docs-site ## test the website in a headless Chromium, in a desktop and a phone layout
	@SITE="$$PWD/_artifacts/site" go -C scripts/docssite test -count=1 -v -timeout 20m .

.PHONY: check
check: lint verify test ## lint, verify and test: everything except e2e

.PHONY: exercises-check
exercises-check: need-go ## test the exercises themselves; STAGE=1 or EXERCISE=05a,09a; CLUSTER=kind those that need kind; UPDATE=1 writes golden.json
	@GOWORK= go run ./shared/cmd/exercises-check -stage='$(STAGE)' -exercise='$(EXERCISE)' $(if $(UPDATE),-update) $(EXERCISES_FLAGS)

.PHONY: vuln
vuln: need-go ## known vulnerabilities in the dependencies of the modules; needs vuln.go.dev
	@scripts/vuln.sh

.PHONY: plain-image
plain-image: need-go ## pull the image that chapter 01 needs on kind, or build it if it cannot be pulled
	@scripts/plain-image.sh

# The program reads the variables of the command line from its environment.
.PHONY: starter
starter: need-go ## copy a stage as your own project; without variables it prints how
# The program lies in the workspace, whatever GOWORK is; it takes the reader's for what it runs itself.
	@READER_GOWORK="$$GOWORK" GOWORK= go run ./scripts/starter

endif

include scripts/harness.mk
