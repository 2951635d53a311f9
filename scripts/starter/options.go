package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const usage = `make starter copies a stage out as a project of your own:

  make starter STAGE=2 DEST=../my-op MODULE=github.com/me/my-op DOMAIN=me.dev KIND=Teapot

  STAGE   the stage to start from, 1 to 4
  DEST    the folder to write, which must not exist or be empty
  MODULE  the Go module path of your project
  DOMAIN  the domain of your API group
  KIND    the kind that your operator looks after, in CamelCase
  VERIFY  set to 1 to build, test and run the result on a cluster afterwards`

// options are what the reader asks for.
type options struct {
	Stage  string
	Dest   string
	Module string
	Domain string
	Kind   string
	Verify bool
}

func optionsFromEnv() options {
	return options{
		Stage:  os.Getenv("STAGE"),
		Dest:   os.Getenv("DEST"),
		Module: os.Getenv("MODULE"),
		Domain: os.Getenv("DOMAIN"),
		Kind:   os.Getenv("KIND"),
		Verify: os.Getenv("VERIFY") != "" && os.Getenv("VERIFY") != "0",
	}
}

// check says everything that is wrong with the options, in the reader's words. It makes Dest an
// absolute path. repo is the repository, which must not hold the copy: its workspace would claim it.
func (o *options) check(repo string) error {
	var missing []string
	for _, option := range []struct{ name, value string }{
		{"STAGE", o.Stage}, {"DEST", o.Dest}, {"MODULE", o.Module}, {"DOMAIN", o.Domain}, {"KIND", o.Kind},
	} {
		if option.value == "" {
			missing = append(missing, option.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s missing\n\n%s", strings.Join(missing, ", "), usage)
	}
	return errors.Join(o.checkDest(repo), o.checkModule(), o.checkDomain(), o.checkKind())
}

func (o *options) checkDest(repo string) error {
	given, dest := o.Dest, o.Dest
	// Not every shell expands the tilde of an argument such as DEST=~/my-op.
	if rest, found := strings.CutPrefix(dest, "~/"); found {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("DEST=%s: %w", o.Dest, err)
		}
		dest = filepath.Join(home, rest)
	}
	dest, err := filepath.Abs(dest)
	if err != nil {
		return fmt.Errorf("DEST=%s: %w", o.Dest, err)
	}
	entries, err := os.ReadDir(dest)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("DEST=%s is not empty: choose a folder that does not exist or is empty", o.Dest)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("DEST=%s cannot be used: %w", o.Dest, err)
	}
	if parent, err := os.Stat(filepath.Dir(dest)); err != nil || !parent.IsDir() {
		return fmt.Errorf("DEST=%s: there is no folder %s to put it in", o.Dest, filepath.Dir(dest))
	}
	// A link may lead back into the repository.
	if o.Dest, err = realPath(dest); err != nil {
		return fmt.Errorf("DEST=%s: %w", dest, err)
	}
	if inside(o.Dest, repo) {
		return fmt.Errorf("DEST=%s is inside this repository: choose a folder outside of %s", given, repo)
	}
	return nil
}

// realPath is without links, but for the last part of a path that does not exist.
func realPath(path string) (string, error) {
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		return whole, nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// inside reports whether a path is that of a folder or of something in it.
func inside(path, folder string) bool {
	info, err := os.Stat(folder)
	if err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		if other, err := os.Stat(path); err == nil && os.SameFile(info, other) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

func (o *options) checkModule() error {
	if err := module.CheckPath(o.Module); err != nil {
		return fmt.Errorf("MODULE=%s is not a module path such as github.com/me/my-op: %w", o.Module, err)
	}
	if slices.Contains(strings.Split(o.Module, "/"), "vendor") {
		return fmt.Errorf("MODULE=%s: Go imports nothing from a folder that is called vendor; choose another path", o.Module)
	}
	if strings.HasPrefix(o.Module, "gopkg.in/") {
		return fmt.Errorf("MODULE=%s: a path of gopkg.in ends in a version, and those of the test's and the harness's modules inside the copy cannot; choose another", o.Module)
	}
	if o.project() == "" {
		return fmt.Errorf("MODULE=%s needs a letter or a digit in its last word: the project is called after it", o.Module)
	}
	return nil
}

func (o *options) checkDomain() error {
	if problems := validation.IsDNS1123Subdomain(o.Domain); len(problems) > 0 {
		return fmt.Errorf("DOMAIN=%s is not a domain such as me.dev: %s", o.Domain, problems[0])
	}
	if !strings.Contains(o.Domain, ".") {
		return fmt.Errorf("DOMAIN=%s needs a dot, as in me.dev: it becomes an API group", o.Domain)
	}
	if regexp.MustCompile(`(^|\.)(k8s|kubernetes)\.io$`).MatchString(o.Domain) {
		return fmt.Errorf("DOMAIN=%s belongs to Kubernetes: the API server rejects such a group without an approval", o.Domain)
	}
	return nil
}

// maxKind leaves room for the longest name that is made of the kind, the metrics Service
// KIND-controller-manager-metrics-service: a name of a Service has at most 63 characters.
const maxKind = 63 - len("-controller-manager-metrics-service")

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func (o *options) checkKind() error {
	switch {
	case !camelCase.MatchString(o.Kind) || strings.ToUpper(o.Kind) == o.Kind:
		return fmt.Errorf("KIND=%s is not in CamelCase: begin with a capital and use letters and digits only, as in Teapot or TeaPot", o.Kind)
	case len(o.Kind) > maxKind:
		return fmt.Errorf("KIND=%s is too long: names are made of it, so it has at most %d characters", o.Kind, maxKind)
	case plural(strings.ToLower(o.Kind)) == strings.ToLower(o.Kind):
		return fmt.Errorf("KIND=%s is its own plural: names of one and of several would be the same; choose another", o.Kind)
	case !isYAMLString(o.Kind):
		return fmt.Errorf("KIND=%s: in YAML the word is no string, and no manifest could say kind: %s; choose another", o.Kind, o.Kind)
	case strings.HasSuffix(o.Kind, "List"):
		return fmt.Errorf("KIND=%s ends in List: that is how Kubernetes names a list of a kind", o.Kind)
	}
	return nil
}

// isYAMLString tells Teapot from On, Off, Null and the other words that YAML has for values.
func isYAMLString(word string) bool {
	var value any
	err := yaml.Unmarshal([]byte(word), &value)
	_, isString := value.(string)
	return err == nil && isString
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// project is what the copy is called: the last word of the module path, as far as a cluster's name can hold it
// beside the hash.
func (o *options) project() string {
	prefix, _, _ := module.SplitPathVersion(o.Module)
	name := notInNames.ReplaceAllString(strings.ToLower(prefix[strings.LastIndex(prefix, "/")+1:]), "-")
	return strings.Trim(name[:min(len(name), maxCluster-hashLength-1)], "-")
}

// maxCluster is how long the name of a cluster may be: the harness takes 40 characters, and make bench has a cluster of
// that name and -bench.
const maxCluster, hashLength = 40 - len("-bench"), 8

// cluster is what clusters and images of the copy are called. Many a module path ends in the same word, and one
// project must not end the cluster of another: so a hash of the whole path is part of the name.
func (o *options) cluster() string {
	sum := sha256.Sum256([]byte(o.Module))
	return o.project() + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
