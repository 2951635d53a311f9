package cluster

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	"sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/yaml"
)

// kwokStages are what kwok does to nodes and pods: the stages that its own module carries, with one
// condition more where a pod's status is written, for ManualPodAnnotation.
func kwokStages() ([]byte, error) {
	texts := [][]byte{
		[]byte(nodefast.DefaultNodeInit),
		[]byte(heartbeat.DefaultNodeHeartbeat),
		[]byte(podfast.DefaultPodDelete),
	}
	for _, text := range []string{podfast.DefaultPodReady, podfast.DefaultPodComplete} {
		stage, err := sparingManualPods(text)
		if err != nil {
			return nil, fmt.Errorf("reading kwok's stages: %w", err)
		}
		texts = append(texts, stage)
	}
	return bytes.Join(texts, []byte("\n---\n")), nil
}

// sparingManualPods adds to what a stage selects: no pod that has ManualPodAnnotation.
func sparingManualPods(text string) ([]byte, error) {
	var stage map[string]any
	if err := yaml.Unmarshal([]byte(text), &stage); err != nil {
		return nil, err
	}
	path := []string{"spec", "selector", "matchExpressions"}
	expressions, _, err := unstructured.NestedSlice(stage, path...)
	if err != nil {
		return nil, err
	}
	expressions = append(expressions, map[string]any{
		"key":      fmt.Sprintf(".metadata.annotations[%q]", ManualPodAnnotation),
		"operator": "DoesNotExist",
	})
	if err := unstructured.SetNestedSlice(stage, expressions, path...); err != nil {
		return nil, err
	}
	return yaml.Marshal(stage)
}
