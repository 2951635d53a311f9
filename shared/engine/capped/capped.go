// Package capped takes capabilities out of the container specifications that runc is given.
//
// A host may itself lack capabilities (its bounding set says which it can ever have). runc fails to
// start a privileged container there, because it asks for all of them, and the nodes of a kind
// cluster are privileged containers.
package capped

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// File finds, in runc's arguments, the JSON file that holds the capabilities runc will ask for, and
// the path inside that JSON to them. It returns "" for commands that start no process.
func File(args []string) (file string, path []string) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--bundle", "-b": // runc create, runc run
			return filepath.Join(value, "config.json"), []string{"process", "capabilities"}
		case "--process", "-p": // runc exec
			return value, []string{"capabilities"}
		}
	}
	return "", nil
}

// Limit removes, from every capability list at path in an OCI specification, the names that allowed
// rejects. Everything else in the specification stays as it was. A specification with no capabilities
// is returned unchanged.
func Limit(spec []byte, path []string, allowed func(name string) bool) ([]byte, error) {
	if len(path) == 0 {
		var sets map[string][]string
		if err := json.Unmarshal(spec, &sets); err != nil {
			return nil, fmt.Errorf("reading capabilities: %w", err)
		}
		for set, names := range sets {
			kept := []string{}
			for _, name := range names {
				if allowed(name) {
					kept = append(kept, name)
				}
			}
			sets[set] = kept
		}
		return json.Marshal(sets)
	}
	// One level at a time, with raw values: fields unknown here pass through untouched.
	var object map[string]json.RawMessage
	if err := json.Unmarshal(spec, &object); err != nil {
		return nil, fmt.Errorf("reading the container specification: %w", err)
	}
	inner, ok := object[path[0]]
	if !ok || bytes.Equal(inner, []byte("null")) {
		return spec, nil
	}
	limited, err := Limit(inner, path[1:], allowed)
	if err != nil {
		return nil, err
	}
	object[path[0]] = limited
	return json.Marshal(object)
}

// LimitFile does Limit to a file, in place.
func LimitFile(file string, path []string, allowed func(name string) bool) error {
	spec, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the container specification: %w", err)
	}
	limited, err := Limit(spec, path, allowed)
	if err != nil {
		return err
	}
	// WriteFile keeps owner and mode of a file that is there.
	if err := os.WriteFile(file, limited, 0o600); err != nil {
		return fmt.Errorf("writing the container specification: %w", err)
	}
	return nil
}
