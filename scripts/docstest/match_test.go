package docstest

import "testing"

func TestMatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shown, output string
		differs       bool
	}{
		"the same":                             {shown: "a\nb\n", output: "a\nb\n"},
		"columns of another width":             {shown: "NAME   AGE\n", output: "NAME        AGE\n"},
		"another age":                          {shown: "foo 12s\n", output: "foo 1m4s\n"},
		"another time":                         {shown: "at 2026-11-22T04:05:06Z\n", output: "at 2027-01-02T03:04:05.678Z\n"},
		"another uid":                          {shown: "0b5fbc2a-92a4-4b1c-8e1d-1f0e3f0a7b11", output: "1b5fbc2a-92a4-4b1c-8e1d-1f0e3f0a7b12"},
		"a number is no age":                   {shown: "replicas 2", output: "replicas 3", differs: true},
		"another word":                         {shown: "Ready", output: "NotReady", differs: true},
		"a line too few":                       {shown: "a\nb\n", output: "a\n", differs: true},
		"a line too many":                      {shown: "a\n", output: "a\nb\n", differs: true},
		"part of a line left out":              {shown: "pod/foo-… created", output: "pod/foo-x7k2p created"},
		"lines left out":                       {shown: "a\n…\nd\n", output: "a\nb\nc\nd\n"},
		"no lines where some may be left out":  {shown: "a\n…\nd\n", output: "a\nd\n"},
		"the end left out":                     {shown: "a\n…\n", output: "a\nb\n"},
		"what comes after lines is not there":  {shown: "a\n…\nd\n", output: "a\nb\n", differs: true},
		"empty lines":                          {shown: "a\n\nb\n", output: "a\nb\n\n"},
		"what looks like a pattern is no such": {shown: "a.c (x)", output: "abc (x)", differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := Match(test.shown, test.output); (err != nil) != test.differs {
				t.Errorf("got %v", err)
			}
		})
	}
}
