package controller

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// indexed simulates the cache with a client. It selects by label where the cache has an index, and lists all dependents,
// because the cache also indexes them by owner. It applies the cache's transform to the results.
func indexed(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			index := func(client.Object) bool { return true }
			if options.FieldSelector != nil {
				goop, _ := options.FieldSelector.RequiresExactMatch(goopIndex)
				options.FieldSelector = fields.Everything()
				index = func(object client.Object) bool { return slices.Contains(indexDependent(object), goop) }
				if _, isPods := list.(*corev1.PodList); isPods {
					options.LabelSelector = labels.SelectorFromSet(labels.Set{v1alpha1.LabelGoop: goop})
				}
			}
			if err := c.List(ctx, list, options); err != nil {
				return err
			}
			items, err := apimeta.ExtractList(list)
			if err != nil {
				return err
			}
			items = slices.DeleteFunc(items, func(item runtime.Object) bool { return !index(item.(client.Object)) })
			for i := range items {
				reduced, err := transform(items[i])
				if err != nil {
					return err
				}
				items[i] = reduced.(runtime.Object)
			}
			return apimeta.SetList(list, items)
		},
	})
}

// freezeCache replaces the reconciler by one whose cache no longer receives events of the Goop.
func (f *goopTestEnv) freezeCache(goop *v1alpha1.Goop) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if stale, ok := obj.(*v1alpha1.Goop); ok {
				goop.DeepCopyInto(stale)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// blind replaces the reconciler by one whose cache has no objects of a kind.
func (f *goopTestEnv) blind(kind client.Object) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if reflect.TypeOf(obj) == reflect.TypeOf(kind) {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list).String() == reflect.TypeOf(kind).String()+"List" {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}
