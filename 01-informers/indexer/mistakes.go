package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// panics calls a function, and returns the message of its panic and whether there was one.
func panics(call func() error) (message string, panicked bool) {
	defer func() {
		if recovered := recover(); recovered != nil {
			message, panicked = fmt.Sprint(recovered), true
		}
	}()
	_ = call()
	return "", false
}

// breakByError adds an object for which the index function returns an error. Add has no way to return it, so
// the store panics (thread_safe_store.go, updateSingleIndex). In an informer that ends the process.
func breakByError(env *lesson.Env) {
	env.Printf("\n5. An index function that returns an error\n")
	orphan, owned := pod("shop", "web-0"), pod("shop", "web-0", ownedBy("uid-web"))
	broken := func() (cache.Indexer, string, bool) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(
			cache.TypedIndexers[*corev1.Pod]{byOwner: ownerOrError}))
		message, panicked := panics(func() error { return indexer.Add(orphan) })
		return indexer, message, panicked
	}
	indexer, message, panicked := broken()
	env.Printf("   Add panics: %t: %s\n", panicked, message)
	_, found, err := indexer.GetByKey("shop/web-0")
	lesson.Check(err)
	env.Printf("   the store has the object: %t\n", found)

	// Add wrote the map before it called the index function. Every later write to this key calls the function
	// for the old object too, and panics again.
	other, _, _ := broken()
	_, panicked = panics(func() error { return other.Delete(owned) })
	env.Printf("   Delete panics: %t\n", panicked)
	other, _, _ = broken()
	_, panicked = panics(func() error { return other.Replace([]any{owned}, "70") })
	env.Printf("   Replace, which discards the old objects, panics: %t\n", panicked)
	_, panicked = panics(func() error { return indexer.Update(owned) })
	env.Printf("   Update with an object that has an owner panics: %t\n", panicked)
	_, panicked = panics(func() error { return indexer.Update(owned) })
	env.Printf("   the same Update again panics: %t. The index returns for its owner: %s\n",
		panicked, describe(lesson.Must(indexer.ByIndex(byOwner, "uid-web"))))
}

// breakByMutation changes a label of an object that the store returned.
func breakByMutation(env *lesson.Env) {
	env.Printf("\n6. A cached object that is modified: the store returns its own pointers\n")
	indexer := newIndexer(pod("shop", "web-0", withApp("web")))
	show := func(when string) {
		env.Printf("   %-34s app=%-4s %s\n", when, "web", describe(lesson.Must(indexer.ByIndex(byApp, "web"))))
		env.Printf("   %-34s app=%-4s %s\n", "", "db", describe(lesson.Must(indexer.ByIndex(byApp, "db"))))
	}
	show("before:")
	obj, _, err := indexer.GetByKey("shop/web-0")
	lesson.Check(err)
	obj.(*corev1.Pod).Labels["app"] = "db" // The mistake: DeepCopy first.
	show("its label modified to db:")
	// The index is updated by the difference between the old object and the new one, and the old object no longer has the
	// value under which it was indexed.
	lesson.Check(indexer.Update(pod("shop", "web-0", withApp("db"))))
	show("then updated from the server, db:")
	lesson.Check(indexer.Delete(pod("shop", "web-0")))
	show("then deleted:")
}

// describe formats the result of a lookup.
func describe(objects []any) string {
	if len(objects) == 0 {
		return "nothing"
	}
	texts := make([]string, len(objects))
	for i, obj := range objects {
		if obj == nil {
			texts[i] = "a nil, on which a type assertion panics"
			continue
		}
		pod := obj.(*corev1.Pod)
		texts[i] = fmt.Sprintf("%s (with the label %s)", cache.MetaObjectToName(pod), pod.Labels["app"])
	}
	return strings.Join(texts, ", ")
}
