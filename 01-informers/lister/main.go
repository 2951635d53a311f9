// Package main is the lesson on listers: what reads from an informer's store, what reads from the API
// server, and what a lister does with a selector.
//
// Two things are called lister, and they have nothing to do with each other:
//
//   - cache.Lister (listwatch.go; today cache.ListerWithContext) is half of a ListerWatcher. Each call is
//     a request to the API server. A reflector is its only user.
//   - The generated lister (k8s.io/client-go/listers/core/v1, PodLister) reads an indexer. It has no
//     client, so it could not make a request.
//
// Source, k8s.io/client-go v0.37.2:
//
//	listers/core/v1/pod.go      PodLister, made by lister-gen
//	listers/generic_helpers.go  ResourceIndexer: what all generated listers do
//	tools/cache/listers.go      ListAll and ListAllByNamespace: what List does
//	tools/cache/listwatch.go    the other Lister
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "lister",
	Shows: "Listers: requests counted at the transport, what a selector costs, and what a lister cannot know.",
	Run:   run,
}

func run(ctx context.Context, world *lesson.World) error {
	if err := makePods(ctx, world.Client, world.Namespace, map[string]int{"web": 4, "db": 2}); err != nil {
		return err
	}
	requests, client, err := counted(world.Config)
	if err != nil {
		return err
	}
	if err := theTwoListers(ctx, world, client, requests); err != nil {
		return err
	}
	if err := whatItCannotKnow(ctx, world, client, requests); err != nil {
		return err
	}
	if err := whatASelectorCosts(world); err != nil {
		return err
	}
	return sharedObjects(world)
}

// counted returns a client whose requests for pods are counted, each before it is sent.
func counted(config *rest.Config) (*requests, kubernetes.Interface, error) {
	requests := &requests{}
	config = rest.CopyConfig(config)
	config.Wrap(requests.count)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client that counts: %w", err)
	}
	return requests, client, nil
}

// theTwoListers asks both for the same pods and counts requests.
func theTwoListers(ctx context.Context, world *lesson.World, client kubernetes.Interface, requests *requests) error {
	world.Printf("1. cache.Lister: the half of a ListerWatcher that lists\n")
	fromServer := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", world.Namespace, fields.Everything())
	for range 3 {
		list, err := fromServer.ListWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing from the server: %w", err)
		}
		world.Printf("   %d pods, requests so far: %s\n", len(list.(*corev1.PodList).Items), requests)
	}

	requests.reset()
	world.Printf("\n2. The generated lister: a view of an informer's store\n")
	informer := newInformer(client, world.Namespace)
	pods, err := informer.lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing before the start: %w", err)
	}
	world.Printf("   before the informer was started: %d pods, no error, requests: %s\n", len(pods), requests)
	if err := informer.start(ctx); err != nil {
		return err
	}
	defer informer.stop()
	world.Printf("   the informer has synced,              requests: %s\n", requests)
	requests.reset()
	for range 1000 {
		if pods, err = informer.lister.Pods(world.Namespace).List(labels.Everything()); err != nil {
			return fmt.Errorf("listing from the store: %w", err)
		}
		if _, err := informer.lister.Pods(world.Namespace).Get("web-0"); err != nil {
			return fmt.Errorf("getting from the store: %w", err)
		}
	}
	world.Printf("   1000 times List (%d pods) and Get:     requests: %s\n", len(pods), requests)
	return nil
}

// whatItCannotKnow makes a pod that an informer was not told of.
func whatItCannotKnow(ctx context.Context, world *lesson.World, client kubernetes.Interface, requests *requests) error {
	world.Printf("\n3. What a lister says is what the informer heard last\n")
	informer := newInformer(client, world.Namespace)
	if err := informer.start(ctx); err != nil {
		return err
	}
	defer informer.stop()
	requests.reset()
	if err := makePods(ctx, world.Client, world.Namespace, map[string]int{"late": 1}); err != nil {
		return err
	}
	if err := informer.waitFor(ctx, world.Namespace, "late-0"); err != nil {
		return err
	}
	world.Printf("   a pod made while the watch is open:   the lister has it, requests: %s\n", requests)

	informer.stop()
	if err := makePods(ctx, world.Client, world.Namespace, map[string]int{"unheard": 1}); err != nil {
		return err
	}
	_, err := informer.lister.Pods(world.Namespace).Get("unheard-0")
	world.Printf("   a pod made after the watch ended:     the lister: %v\n", err)
	if _, err := client.CoreV1().Pods(world.Namespace).Get(ctx, "unheard-0", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("getting the pod from the server: %w", err)
	}
	world.Printf("                                         the server has it\n")
	_, err = client.CoreV1().Pods(world.Namespace).Get(ctx, "nobody", metav1.GetOptions{})
	world.Printf("   a pod that nobody made:               the server: %v\n", err)
	_, err = informer.lister.Pods("another-namespace").Get("web-0")
	world.Printf("   a namespace that is not watched:      the lister: %v\n", err)
	return nil
}

func whatASelectorCosts(world *lesson.World) error {
	world.Printf("\n4. List with a selector, in %d pods of %d namespaces, %d of them with app=web\n", fleetSize, namespaces, fleetSize/apps)
	table, err := selectorCosts()
	if err != nil {
		return err
	}
	for _, cost := range table {
		world.Printf("   %s\n", cost)
	}
	world.Printf("   A lister knows one index, that of namespaces. For the others ask the indexer: ByIndex.\n")
	return nil
}

func sharedObjects(world *lesson.World) error {
	world.Printf("\n5. What a lister returns is the store's own object\n")
	same, copied, err := readTwice()
	if err != nil {
		return err
	}
	world.Printf("   two readers get the same pointer:      %t\n", same)
	world.Printf("   a label changed on a DeepCopy is seen: %t\n", copied)
	return nil
}
