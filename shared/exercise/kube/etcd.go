package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/workbook/shared/exercise/check"
)

// Stored returns the custom resources of a kind as they are in etcd. The API server converts what it returns, so only this shows in which
// version each is stored.
func Stored(b *check.B, resource schema.GroupResource) []unstructured.Unstructured {
	objects, err := stored(b.Context(), "/registry/"+resource.Group+"/"+resource.Resource+"/")
	if err != nil {
		b.Fatalf("reading from etcd: %v", err)
	}
	return objects
}

// stored asks the JSON gateway of etcd, which needs no client of etcd's own.
func stored(ctx context.Context, prefix string) ([]unstructured.Unstructured, error) {
	server, err := server()
	if err != nil {
		return nil, err
	}
	end := []byte(prefix)
	end[len(end)-1]++
	query, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.Etcd+"/v3/kv/range", bytes.NewReader(query))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd says %s", response.Status)
	}
	var found struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, err
	}
	objects := make([]unstructured.Unstructured, len(found.KVs))
	for i, kv := range found.KVs {
		if err := json.Unmarshal(kv.Value, &objects[i].Object); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
