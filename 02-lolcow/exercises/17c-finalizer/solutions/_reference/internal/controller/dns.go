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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// dnsClient gives a request up that gets no response: the worker that waits for it reconciles nothing else.
var dnsClient = &http.Client{Timeout: 3 * time.Second}

// errDNS says that the DNS service did not do what it was asked for.
var errDNS = errors.New("the DNS service")

// ensureRecord brings the record of a Lolcow to what its spec says. The finalizer is there before the record: if the operator
// crashes in between, it will delete a record that was never made, which does no harm.
func (r *LolcowReconciler) ensureRecord(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	if lolcow.Spec.Hostname == "" {
		return r.deleteRecord(ctx, lolcow, false)
	}
	if err := r.setFinalizer(ctx, lolcow, controllerutil.AddFinalizer); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"hostname": lolcow.Spec.Hostname})
	if err != nil {
		return err
	}
	return r.request(ctx, http.MethodPut, lolcow, string(body))
}

// deleteRecord deletes the record, if there may be one, and then removes the finalizer. If it may give up, it removes the
// finalizer also without that.
func (r *LolcowReconciler) deleteRecord(ctx context.Context, lolcow *v1alpha1.Lolcow, mayGiveUp bool) error {
	if !controllerutil.ContainsFinalizer(lolcow, finalizer) {
		return nil
	}
	failed := r.request(ctx, http.MethodDelete, lolcow, "")
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

// setFinalizer adds or removes the finalizer. The lock is there because a merge patch replaces the whole list: without it, a
// finalizer that another controller has added meanwhile would be lost.
func (r *LolcowReconciler) setFinalizer(ctx context.Context, lolcow *v1alpha1.Lolcow, change func(client.Object, string) bool) error {
	before := lolcow.DeepCopy()
	if !change(lolcow, finalizer) {
		return nil
	}
	return r.Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// request writes or deletes the record of a Lolcow. Its ID is the uid: no other Lolcow has it, whatever its name or namespace,
// and it stays when the hostname changes. The text of an error has no address: each retry would report another one.
func (r *LolcowReconciler) request(ctx context.Context, method string, lolcow *v1alpha1.Lolcow, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, r.DNS+"/records/"+string(lolcow.UID), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := dnsClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w does not respond to %s", errDNS, method)
	}
	defer response.Body.Close()
	gone := method == http.MethodDelete && response.StatusCode == http.StatusNotFound
	if response.StatusCode >= http.StatusMultipleChoices && !gone {
		return fmt.Errorf("%w responds to %s with %s", errDNS, method, response.Status)
	}
	return nil
}
