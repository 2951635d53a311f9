package image

import (
	"regexp"
	"strings"
	"testing"
)

// What an image's name may be, as in https://pkg.go.dev/github.com/distribution/reference.
var validName = regexp.MustCompile(`^example\.com/[a-z0-9-]+/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)

// A clone, or a copy by `make starter`, lies in a folder of any name.
func TestImagesOfAFolderOfAnyName(t *testing.T) {
	for dir, want := range map[string]string{
		"/x/05-teapot": "05-teapot-manager", "/x/My Op": "my-op-manager", "/x/it's (copy)": "it-s-copy-manager", "/x/.op": "op-manager",
		"/x/a+b": "a-b-manager", "/x/a___b.": "a-b-manager", "/x/ä": "stage-manager",
	} {
		if got := repository(dir, "manager"); !validName.MatchString(got) || !strings.HasSuffix(got, "/"+want) {
			t.Errorf("%s: got %s, want …/%s", dir, got, want)
		}
	}
}

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
