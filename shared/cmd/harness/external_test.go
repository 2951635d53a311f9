package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/deploy"
)

// external is a cluster of the reader's own.
type external struct{ cluster.Cluster }

func (external) Kind() cluster.Kind   { return cluster.KindExternal }
func (external) RunsContainers() bool { return true }
func (external) LoadImages(_ context.Context, refs ...string) (bool, error) {
	if len(refs) > 0 {
		return false, cluster.ErrNoLoading
	}
	return false, nil
}

// Where no engine answers, an operator still runs on a cluster of one's own, and images that are there are deployed.
func TestImagesOfAnExternalCluster(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	for file, content := range map[string]string{
		"config/manager/kustomization.yaml": "images:\n- name: controller\n- name: teapot\n",
		"Dockerfile":                        "FROM scratch AS teapot\nFROM scratch AS manager\n",
	} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := &cobra.Command{}
	cmd.SetOut(io.Discard)
	for name, row := range map[string]struct {
		stage stage
		want  deploy.Images
		err   string
	}{
		"they are there":            {stage{loaded: true}, deploy.Images{}, ""},
		"one is there by this name": {stage{loaded: true, images: []string{"controller=me/it:v1"}}, deploy.Images{"controller": "me/it:v1"}, ""},
		"all are named": {
			stage{images: []string{"controller=me/it:v1", "teapot=me/pot:v1"}},
			deploy.Images{"controller": "me/it:v1", "teapot": "me/pot:v1"}, "",
		},
		"one is not":                     {stage{images: []string{"controller=me/it:v1"}}, nil, "LOADED=1"},
		"none is":                        {stage{}, nil, "REGISTRY=HOST:PORT"},
		"a registry, and no engine":      {stage{registry: "localhost:5000"}, nil, "no container engine answers, and the images are built by one"},
		"a registry, and they are there": {stage{registry: "localhost:5000", loaded: true}, nil, "either"},
	} {
		row.stage.dir = dir
		got, err := row.stage.resolve(t.Context(), cmd, external{})
		if (err == nil) != (row.err == "") || err != nil && (!strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), "CLUSTER=embedded")) ||
			!maps.Equal(got, row.want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
