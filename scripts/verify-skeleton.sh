#!/bin/sh
# verify-skeleton.sh: the stages' internal/controller have one skeleton: the same files in the same order, no function
# that uses one of an earlier file, and the same text where two stages declare the same.
set -eu
unset CDPATH GOOS GOARCH
cd "$(dirname "$0")/.."
GOWORK=off go -C scripts/tools run ./skeleton -root "$PWD"
