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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

// fieldOwner is the name under which the API server records which fields are this controller's.
const fieldOwner = "lolcow-controller"

// errNameConflict says that an object has the name of a dependent, and another owner or none.
var errNameConflict = errors.New("exists, and the Lolcow does not own it: it is left unchanged")

// configuration is what the apply configurations of a Deployment and of a Service have in common.
type configuration[C any] interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetName() *string
	WithUID(uid types.UID) C
	WithResourceVersion(version string) C
}

// createOnlyResourceVersion is a resourceVersion that no object ever has. An apply with it can only create.
const createOnlyResourceVersion = "1"

// ensure brings a dependent to what is desired, and reads into live what there is. It writes only if what this controller
// owns of the dependent differs. All other fields are those of other writers.
func ensure[O client.Object, C configuration[C]](
	ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow, live O, desired C, extract func(O, string) (C, error),
) error {
	// After a write, what the status of live says is about an older generation.
	older := func() { live.SetGeneration(live.GetGeneration() + 1) }
	err := c.Get(ctx, client.ObjectKeyFromObject(lolcow), live)
	if apierrors.IsNotFound(err) {
		// If another client has created an object of this name meanwhile, the apply fails with a Conflict.
		older()
		return c.Apply(ctx, desired.WithResourceVersion(createOnlyResourceVersion), client.FieldOwner(fieldOwner))
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(live, lolcow) {
		return fmt.Errorf("%s %s %w", *desired.GetKind(), *desired.GetName(), errNameConflict)
	}
	owned, err := extract(live, fieldOwner)
	if err == nil && equality.Semantic.DeepEqual(owned, desired) {
		return nil
	}
	// With force: these fields are ours, also where others have changed them. With the uid, the apply fails if the object that
	// was read has been replaced by another of the same name.
	older()
	return c.Apply(ctx, desired.WithUID(live.GetUID()), client.FieldOwner(fieldOwner), client.ForceOwnership)
}
