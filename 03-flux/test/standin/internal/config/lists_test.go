package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestExpandHosts(t *testing.T) {
	for list, want := range map[string][]string{
		"demo-[0-3]":          {"demo-0", "demo-1", "demo-2", "demo-3"},
		"demo-0":              {"demo-0"},
		"demo-[0]":            {"demo-0"},
		"demo-[2,0-1]":        {"demo-2", "demo-0", "demo-1"},
		"a,b-[8-10],c":        {"a", "b-8", "b-9", "b-10", "c"},
		"demo-[08-10].local":  {"demo-08.local", "demo-09.local", "demo-10.local"},
		"":                    nil,
		"a,,b":                nil,
		"demo-[0-":            nil,
		"demo-0-3]":           nil,
		"demo-[3-0]":          nil,
		"demo-[]":             nil,
		"demo-[a]":            nil,
		"demo-[0-9999999999]": nil,
		"[0][1]":              nil,
	} {
		got, err := ExpandHosts(list)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %q, %v, want %q", list, got, err, want)
		}
	}
	thousand, err := ExpandHosts("demo-[0-999]")
	if err != nil || len(thousand) != 1000 || thousand[999] != "demo-999" {
		t.Errorf("of a thousand: got %d, %v", len(thousand), err)
	}
}

func TestJoinHosts(t *testing.T) {
	for list, want := range map[string]string{
		"":                     "",
		"demo-0":               "demo-0",
		"demo-1 demo-2":        "demo-[1-2]",
		"demo-0 demo-1 demo-3": "demo-[0-1,3]",
		"demo-9 demo-10":       "demo-[9-10]",
		"a b":                  "a,b",
		"demo-2 demo-1":        "demo-2,demo-1",
		"demo-01 demo-02":      "demo-01,demo-02",
	} {
		if got := JoinHosts(strings.Fields(list)); got != want {
			t.Errorf("%s: got %s, want %s", list, got, want)
		}
	}
}

func TestCountIDs(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-3,2-5": 6, "7,9": 2, "": -1, "a": -1, "3-0": -1, "-1": -1, "0-": -1} {
		got, err := CountIDs(list)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, %v, want %d", list, got, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1.5m": 90 * time.Second, "100ms": 100 * time.Millisecond, "3": 3 * time.Second, "0": 0,
		"1h": time.Hour, "2d": 48 * time.Hour,
		"": -1, "x": -1, "5x": -1, "-1s": -1, "1m30s": -1, "5 s": -1, "nan": -1, "infinity": -1, "1e300d": -1,
	} {
		got, err := Duration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}
