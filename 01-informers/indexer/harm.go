package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// panics calls what may panic and returns what it says then.
func panics(call func() error) (says string, panicked bool) {
	defer func() {
		if recovered := recover(); recovered != nil {
			says, panicked = fmt.Sprint(recovered), true
		}
	}()
	if err := call(); err != nil {
		return err.Error(), false
	}
	return "", false
}

// breakByError adds an object that the index function ownerOrError refuses. The store cannot refuse the
// object, as it has no one to tell, so it panics (thread_safe_store.go, updateSingleIndex). In an informer
// that is the end of the process.
func breakByError(tell func(string)) error {
	bad, good := pod("shop", "web-0"), pod("shop", "web-0", ownedBy("uid-web"))
	broken := func() cache.Indexer {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(
			cache.TypedIndexers[*corev1.Pod]{byOwner: ownerOrError}))
		panics(func() error { return indexer.Add(bad) })
		return indexer
	}
	indexer := broken()
	says, panicked := panics(func() error { return indexer.Add(bad) })
	tell(fmt.Sprintf("Add panics: %t: %s", panicked, says))
	_, found, err := indexer.GetByKey("shop/web-0")
	if err != nil {
		return fmt.Errorf("getting the object: %w", err)
	}
	tell(fmt.Sprintf("and yet the store has the object: %t", found))

	// It was put in before the index was asked, and it poisons its key: a write asks for the values of the
	// old object too.
	_, panicked = panics(func() error { return broken().Delete(good) })
	tell(fmt.Sprintf("Delete panics: %t", panicked))
	_, panicked = panics(func() error { return broken().Replace([]any{good}, "70") })
	tell(fmt.Sprintf("Replace, which forgets the old objects, panics: %t", panicked))
	_, panicked = panics(func() error { return indexer.Update(good) })
	tell(fmt.Sprintf("Update with an object that has an owner panics: %t", panicked))
	_, panicked = panics(func() error { return indexer.Update(good) })
	objects, err := indexer.ByIndex(byOwner, "uid-web")
	if err != nil {
		return fmt.Errorf("looking up by owner: %w", err)
	}
	tell(fmt.Sprintf("the same Update once more panics: %t. The index finds by its owner: %s", panicked, describe(objects)))
	return nil
}

// breakByMutation changes a label of an object that the store handed out.
func breakByMutation(tell func(string)) error {
	indexer := newIndexer()
	if err := indexer.Add(pod("shop", "web-0", withApp("web"))); err != nil {
		return fmt.Errorf("adding the pod: %w", err)
	}
	found := func(when string) error {
		for _, app := range []string{"web", "db"} {
			objects, err := indexer.ByIndex(byApp, app)
			if err != nil {
				return fmt.Errorf("looking up app=%s: %w", app, err)
			}
			tell(fmt.Sprintf("%-34s app=%-4s %s", when, app, describe(objects)))
			when = ""
		}
		return nil
	}
	if err := found("as it should be:"); err != nil {
		return err
	}

	obj, _, err := indexer.GetByKey("shop/web-0")
	if err != nil {
		return fmt.Errorf("getting the pod: %w", err)
	}
	obj.(*corev1.Pod).Labels["app"] = "db" // the mistake: DeepCopy first
	if err := found("its label changed in place to db:"); err != nil {
		return err
	}

	// The event that follows brings a good object. But the index is changed by the difference of old and
	// new, and the old object no longer says what it was indexed under.
	if err := indexer.Update(pod("shop", "web-0", withApp("db"))); err != nil {
		return fmt.Errorf("updating the pod: %w", err)
	}
	if err := found("then updated by the server, db:"); err != nil {
		return err
	}
	if err := indexer.Delete(pod("shop", "web-0")); err != nil {
		return fmt.Errorf("deleting the pod: %w", err)
	}
	return found("then deleted:")
}

// describe says what a look-up returned.
func describe(objects []any) string {
	if len(objects) == 0 {
		return "nothing"
	}
	texts := make([]string, len(objects))
	for i, obj := range objects {
		if obj == nil {
			texts[i] = "a nil that no type assertion survives"
			continue
		}
		pod := obj.(*corev1.Pod)
		texts[i] = fmt.Sprintf("%s (its label says %s)", cache.MetaObjectToName(pod), pod.Labels["app"])
	}
	return strings.Join(texts, ", ")
}
