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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/my-lolcow/api/v1alpha1"
)

// greetingKey is the key of a ConfigMap that has the greeting.
const greetingKey = "greeting"

// errNoGreeting says that the ConfigMap of a Lolcow does not exist, or does not have the key.
var errNoGreeting = errors.New("there is no greeting")

// greetingOf is the greeting of a Lolcow: that of its ConfigMap, if it names one, and else that of its spec.
func (r *LolcowReconciler) greetingOf(ctx context.Context, lolcow *v1alpha1.Lolcow) (string, error) {
	name := lolcow.Spec.GreetingConfigMap
	if name == "" {
		return lolcow.Spec.Greeting, nil
	}
	var texts corev1.ConfigMap
	err := r.Get(ctx, types.NamespacedName{Namespace: lolcow.Namespace, Name: name}, &texts)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: the ConfigMap %s does not exist", errNoGreeting, name)
	}
	if err != nil {
		return "", err
	}
	greeting, found := texts.Data[greetingKey]
	if !found {
		return "", fmt.Errorf("%w: the ConfigMap %s does not have the key %s", errNoGreeting, name, greetingKey)
	}
	return greeting, nil
}

// configMapIndex finds the Lolcows that name a ConfigMap.
const configMapIndex = "spec.greetingConfigMap"

// indexConfigMap returns what a Lolcow is found by.
func indexConfigMap(object client.Object) []string {
	if name := object.(*v1alpha1.Lolcow).Spec.GreetingConfigMap; name != "" {
		return []string{name}
	}
	return nil
}

// lolcowsOf are the Lolcows that name a ConfigMap. The index belongs to the cache: no request is sent.
func (r *LolcowReconciler) lolcowsOf(ctx context.Context, configMap client.Object) []reconcile.Request {
	var lolcows v1alpha1.LolcowList
	err := r.List(ctx, &lolcows, client.MatchingFields{configMapIndex: configMap.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Lolcows that name a ConfigMap", "configMap", configMap.GetName())
	}
	var requests []reconcile.Request
	for _, lolcow := range lolcows.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&lolcow)})
	}
	return requests
}
