package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	root := fstest.MapFS{
		"README.md": {Data: []byte("# What it is\n[a](docs/01.md) [b](docs/01.md#the-first) [c](#what-it-is)\n" +
			"[folder](docs/) [elsewhere](https://example.com/x) [by name][d]\n\n[d]: docs/01.md\n")},
		"docs/01.md": {Data: []byte("# Chapter\n## The first\n[up](../README.md)\n```go\nm[0](nowhere)\n```\n")},
		"dead.md":    {Data: []byte("[a](none.md) [b](docs/01.md#the-second) ![c](cow.png)\n")},
	}
	tests := []struct {
		file string
		dead []string
	}{
		{"README.md", nil},
		{"docs/01.md", nil},
		{"dead.md", []string{
			"dead.md: the link to none.md is dead: there is no none.md",
			"dead.md: the link to docs/01.md#the-second is dead: docs/01.md has no such heading",
			"dead.md: the link to cow.png is dead: there is no cow.png",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			dead, err := check(root, []string{tt.file})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(dead, tt.dead) {
				t.Errorf("dead links:\n got %q\nwant %q", dead, tt.dead)
			}
		})
	}
}

func TestCheckFailsForAMissingFile(t *testing.T) {
	if _, err := check(fstest.MapFS{}, []string{"none.md"}); err == nil {
		t.Error("no error for a file that is not there")
	}
}
