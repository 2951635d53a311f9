// Package deploy applies a stage's kustomize configuration to a cluster, with the images that were
// just built, and takes it away again. The stage's files stay as they are: what has to change for
// one deployment is changed in a copy in memory.
package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Images maps the name of an image in the stage's configuration ("controller") to the reference to
// use in its place.
type Images map[string]string

// DefaultOverlay is the folder below STAGE/config that holds all an operator needs. A stage whose
// operator comes in variants has one more folder for each, a kustomization on top of ../default: its
// name is what e2e.Stage, operator.Options and `harness --overlay` take, and what "" means there is
// this one.
const DefaultOverlay = "default"

// Render builds STAGE/config/OVERLAY (empty: DefaultOverlay) and returns the objects in the order in
// which they can be applied. Each image is set where the configuration names it: in the `images:` of the
// kustomization that lists it, else in the overlay's own. An image that is not in a container but in
// an operator's environment is kustomize's to find: see 02-lolcow/config/manager/image_fields.yaml.
func Render(stageDir, overlay string, images Images) ([]*unstructured.Unstructured, error) {
	overlay = cmp.Or(overlay, DefaultOverlay)
	memory := filesys.MakeFsInMemory()
	if err := copyTree(memory, filepath.Join(stageDir, "config")); err != nil {
		return nil, err
	}
	if err := setImages(memory, "/config/"+overlay, images); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces and CRDs first, webhooks last
	result, err := krusty.MakeKustomizer(options).Run(memory, "/config/"+overlay)
	if err != nil {
		return nil, fmt.Errorf("building %s/config/%s: %w", filepath.Base(stageDir), overlay, err)
	}
	var out []*unstructured.Unstructured
	for _, resource := range result.Resources() {
		// By way of JSON: kustomize's own map has numbers of types that no deep copy knows.
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("building %s/config/%s: %w", filepath.Base(stageDir), overlay, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("building %s/config/%s: %w", filepath.Base(stageDir), overlay, err)
		}
		out = append(out, object)
	}
	return out, nil
}

// copyTree copies a folder of this machine to /config in memory.
func copyTree(memory filesys.FileSystem, dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return memory.WriteFile("/config/"+filepath.ToSlash(relative), content)
	})
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	return nil
}

// ImageRefs returns the images that the stage's kustomizations list, by name, with the references that these set.
func ImageRefs(stageDir string) (Images, error) {
	memory := filesys.MakeFsInMemory()
	if err := copyTree(memory, filepath.Join(stageDir, "config")); err != nil {
		return nil, err
	}
	refs := Images{}
	err := eachKustomization(memory, func(k *types.Kustomization) bool {
		for _, image := range k.Images {
			refs[image.Name] = reference(image)
		}
		return false
	})
	return refs, err
}

// reference is the opposite of image.
func reference(image types.Image) string {
	ref := cmp.Or(image.NewName, image.Name)
	switch {
	case image.Digest != "":
		return ref + "@" + image.Digest
	case image.NewTag != "":
		return ref + ":" + image.NewTag
	}
	return ref
}

func setImages(memory filesys.FileSystem, overlay string, images Images) error {
	missing := maps.Clone(images)
	err := eachKustomization(memory, func(k *types.Kustomization) bool {
		changed := false
		for i := range k.Images {
			if ref, found := images[k.Images[i].Name]; found {
				k.Images[i] = image(k.Images[i].Name, ref)
				delete(missing, k.Images[i].Name)
				changed = true
			}
		}
		return changed
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	return editKustomization(memory, overlay+"/kustomization.yaml", func(k *types.Kustomization) bool {
		for name, ref := range missing {
			k.Images = append(k.Images, image(name, ref))
		}
		return true
	})
}

// eachKustomization calls edit for every kustomization in memory.
func eachKustomization(memory filesys.FileSystem, edit func(*types.Kustomization) bool) error {
	return memory.Walk("/config", func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || !slices.Contains(konfig.RecognizedKustomizationFileNames(), info.Name()) {
			return err
		}
		return editKustomization(memory, path, edit)
	})
}

// editKustomization changes a kustomization and writes it back if edit says so.
func editKustomization(memory filesys.FileSystem, path string, edit func(*types.Kustomization) bool) error {
	content, err := memory.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	k := &types.Kustomization{}
	if err := yaml.Unmarshal(content, k); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if !edit(k) {
		return nil
	}
	if content, err = yaml.Marshal(k); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return memory.WriteFile(path, content)
}

// image splits a reference for kustomize: at the @ of a digest, else at the colon of a tag, which
// is not that of a registry's port.
func image(name, ref string) types.Image {
	if repository, digest, found := strings.Cut(ref, "@"); found {
		return types.Image{Name: name, NewName: repository, Digest: digest}
	}
	if i := strings.LastIndex(ref, ":"); i > strings.LastIndex(ref, "/") {
		return types.Image{Name: name, NewName: ref[:i], NewTag: ref[i+1:]}
	}
	return types.Image{Name: name, NewName: ref}
}

// PreferLoaded has the pods of Deployments run the images that the nodes have: one with the tag latest would be pulled
// each time, from a registry that may not have it.
func PreferLoaded(objects []*unstructured.Unstructured) error {
	path := []string{"spec", "template", "spec", "containers"}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			return fmt.Errorf("reading %s: %w", describe(object), err)
		}
		for _, one := range containers {
			if container, _ := one.(map[string]any); container["imagePullPolicy"] == nil {
				container["imagePullPolicy"] = "IfNotPresent"
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
			return fmt.Errorf("changing %s: %w", describe(object), err)
		}
	}
	return nil
}
