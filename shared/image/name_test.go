package image

import "testing"

func TestAShortNameIsReadAsAKubeletDoes(t *testing.T) {
	for ref, want := range map[string]string{
		"lolcow:latest":        "docker.io/library/lolcow:latest",
		"registry:5000/lolcow": "registry:5000/lolcow",
		"localhost/lolcow:v1":  "localhost/lolcow:v1",
	} {
		if got := fullName(ref); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}
