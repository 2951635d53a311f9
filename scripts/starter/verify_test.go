package main

import (
	"slices"
	"testing"
)

func TestVerifyingUsesTheCopysOwnCluster(t *testing.T) {
	t.Setenv("CLUSTER_NAME", "the-reader-s")
	if slices.Contains(cleanEnv(), "CLUSTER_NAME=the-reader-s") {
		t.Error("the reader's cluster would be deleted")
	}
}
