package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// relistInAnInformer shows what a handler learns of a deletion that no watch told.
func relistInAnInformer(ctx context.Context, world *lesson.World) error {
	world.Printf("\n6. The same relist in an informer, as its handler sees it. Its server is a script.\n")
	story := newStory()
	err := story.play(ctx, func(line string) { world.Printf("   %s\n", line) })
	if err != nil {
		return fmt.Errorf("playing the relist: %w", err)
	}
	return nil
}

// patience is how long the story waits for the informer.
const patience = 10 * time.Second

// story is a scripted server, and the informer that believes it.
type story struct {
	lists   chan *corev1.ConfigMapList
	watches chan watch.Interface
	told    chan string
}

func newStory() *story {
	return &story{
		lists:   make(chan *corev1.ConfigMapList, 2),
		watches: make(chan watch.Interface, 2),
		told:    make(chan string, 10),
	}
}

// play lists a@1 and b@2, changes b by a watch, breaks the watch with 410 Gone, and lists again without b.
func (s *story) play(ctx context.Context, tell func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	first, second := watch.NewRaceFreeFake(), watch.NewRaceFreeFake()
	s.watches <- first
	s.watches <- second
	s.lists <- list(5, object("a", 1), object("b", 2))

	informer := cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](
		cache.NewSharedIndexInformerWithOptions(s.listWatch(), &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{}))
	if _, err := informer.AddTypedEventHandler(s.handler()); err != nil {
		return fmt.Errorf("adding the handler: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() { cancel(); <-ended }()
	if err := s.pass(ctx, tell, 2); err != nil {
		return err
	}

	first.Modify(object("b", 6))
	if err := s.pass(ctx, tell, 1); err != nil {
		return err
	}
	// The reflector relists after a pause of 0.8 to 1.6 s (reflector.go, defaultBackoffInit).
	gone := apierrors.NewResourceExpired("too old resource version").Status()
	s.lists <- list(9, object("a", 1))
	first.Error(&gone)
	if err := s.pass(ctx, tell, 2); err != nil {
		return err
	}

	second.Add(object("z", 10))
	if err := s.pass(ctx, tell, 1); err != nil {
		return err
	}
	tell(fmt.Sprintf("the store has seen version %q", informer.GetStore().LastStoreSyncResourceVersion()))
	second.Action(watch.Bookmark, object("", 12))
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return informer.GetStore().LastStoreSyncResourceVersion() != "10", nil
	}); err != nil {
		return fmt.Errorf("waiting for the bookmark: %w", err)
	}
	tell(fmt.Sprintf("after a bookmark, and no other event: %q", informer.GetStore().LastStoreSyncResourceVersion()))
	return nil
}

// pass tells the next lines of the handler.
func (s *story) pass(ctx context.Context, tell func(string), lines int) error {
	for range lines {
		select {
		case line := <-s.told:
			tell(line)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			return errors.New("the informer says nothing more")
		}
	}
	return nil
}

func (s *story) handler() cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap] {
	return cache.TypedResourceEventHandlerDetailedFuncs[*corev1.ConfigMap]{
		AddFunc: func(obj *corev1.ConfigMap, isInInitialList bool) {
			s.told <- fmt.Sprintf("OnAdd    %s, initial list: %t", short(obj), isInInitialList)
		},
		UpdateFunc: func(before, after *corev1.ConfigMap) {
			s.told <- fmt.Sprintf("OnUpdate %s -> %s", short(before), short(after))
		},
		DeleteFunc: func(deleted cache.DeletedObject[*corev1.ConfigMap]) {
			if deleted.FinalStateUnknown != nil {
				s.told <- fmt.Sprintf("OnDelete %s, final state unknown; the last that was seen: %s", deleted.GetKey(), short(deleted.OptionalObj))
				return
			}
			s.told <- fmt.Sprintf("OnDelete %s", short(deleted.OptionalObj))
		},
	}
}

// listWatch answers from the script. It is not asked for a streamed list: see noStreams.
func (s *story) listWatch() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			select {
			case list := <-s.lists:
				return list, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			select {
			case watch := <-s.watches:
				return watch, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}, noStreams{})
}

// noStreams says that its client cannot do watch-list.
type noStreams struct{}

// IsWatchListSemanticsUnSupported is what util/watchlist asks clients.
func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }

func list(version int, objects ...*corev1.ConfigMap) *corev1.ConfigMapList {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
	return list
}
