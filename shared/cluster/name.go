package cluster

import (
	"fmt"
	"path/filepath"
	"regexp"

	"example.com/workbook/shared/config"
)

// validName keeps names usable as container, context and file names, and short enough for what
// kind appends to them.
var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("CLUSTER_NAME=%q cannot be used: lower-case letters, digits and dashes, at most 40 characters", name)
	}
	return nil
}

// ContextName is the name of a cluster's entry in the kubeconfig.
func ContextName(kind Kind, name string) string { return config.ContextName(string(kind), name) }

// stateDir is where a cluster's files are kept outside the repository.
func stateDir(kind Kind, name string) (string, error) {
	cache, err := config.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "clusters", string(kind)+"-"+name), nil
}
