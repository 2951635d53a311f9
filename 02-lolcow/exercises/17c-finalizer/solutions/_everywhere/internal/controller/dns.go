/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/my-lolcow/api/v1alpha1"
)

// finalizer keeps a Lolcow until its record is deleted: the garbage collector knows nothing of the DNS service.
const finalizer = "my.domain/dns"

// recordPatience is how long a deletion waits for that.
const recordPatience = 5 * time.Minute

// recordRetry is how long a DNS service that does not delete a record is left alone.
const recordRetry = 5 * time.Second

// dnsClient gives a request up that gets no response: the worker that waits for it reconciles nothing else.
var dnsClient = &http.Client{Timeout: 3 * time.Second}

// errDNS says that the DNS service did not do what it was asked for.
var errDNS = errors.New("the DNS service")

// record is what the DNS service has of a Lolcow.
type record struct {
	Hostname string `json:"hostname"`
}

// ensureRecord brings the record of a Lolcow to what its spec says. Every Lolcow has the finalizer, before it may have a record.
func (r *LolcowReconciler) ensureRecord(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	if err := r.setFinalizer(ctx, lolcow, controllerutil.AddFinalizer); err != nil {
		return err
	}
	var found record
	if err := r.request(ctx, http.MethodGet, lolcow, &found); err != nil {
		return err
	}
	switch desired := (record{lolcow.Spec.Hostname}); {
	case found == desired:
		return nil
	case desired.Hostname == "":
		return r.request(ctx, http.MethodDelete, lolcow, nil)
	default:
		return r.request(ctx, http.MethodPut, lolcow, &desired)
	}
}

// deleteRecord deletes the record, if there may be one, and then removes the finalizer. If it may give up, it removes the
// finalizer also without that.
func (r *LolcowReconciler) deleteRecord(ctx context.Context, lolcow *v1alpha1.Lolcow, mayGiveUp bool) error {
	if !controllerutil.ContainsFinalizer(lolcow, finalizer) {
		return nil
	}
	failed := r.request(ctx, http.MethodDelete, lolcow, nil)
	if failed != nil && !mayGiveUp {
		return failed
	}
	if err := r.setFinalizer(ctx, lolcow, controllerutil.RemoveFinalizer); err != nil {
		return client.IgnoreNotFound(err)
	}
	if failed != nil {
		r.Recorder.Eventf(lolcow, nil, corev1.EventTypeWarning, "RecordLeft", "Finalize", "the record %s is left: %v", lolcow.UID, failed)
	}
	return nil
}

// setFinalizer adds or removes the finalizer. An update has the resourceVersion that was read: it fails if another controller has
// written meanwhile.
func (r *LolcowReconciler) setFinalizer(ctx context.Context, lolcow *v1alpha1.Lolcow, change func(client.Object, string) bool) error {
	if !change(lolcow, finalizer) {
		return nil
	}
	return r.Update(ctx, lolcow)
}

// request reads, writes or deletes the record of a Lolcow. Its ID is the uid. A record that does not exist is an empty one.
func (r *LolcowReconciler) request(ctx context.Context, method string, lolcow *v1alpha1.Lolcow, content *record) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, r.DNS+"/records/"+string(lolcow.UID), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := dnsClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w does not respond to %s", errDNS, method)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound && method != http.MethodPut:
		return nil
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%w responds to %s with %s", errDNS, method, response.Status)
	case method == http.MethodGet:
		return json.NewDecoder(response.Body).Decode(content)
	}
	return nil
}
