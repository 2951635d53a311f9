package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

// page lists two pods at a time. All pages show the moment of the first one: the continue token holds its
// resourceVersion, and the server keeps that state for some minutes.
//
// k8s.io/client-go@v0.37.2 tools/pager/pager.go, ListPager, follows the tokens for you. Reflectors use it.
func (o *observer) page(ctx context.Context) {
	o.Printf("4. List in pages\n")
	options := metav1.ListOptions{Limit: 2}
	for number := 1; ; number++ {
		list := lesson.Must(o.pods.List(ctx, options))
		o.Printf("   page %d: %s", number, names(list.Items))
		if list.RemainingItemCount != nil {
			o.Printf("; %d more", *list.RemainingItemCount)
		}
		o.Printf("\n")
		if number == 1 {
			o.DeletePods(ctx, "f")
			o.CreatePods(ctx, "g")
			o.Printf("   then f was deleted and g was created\n")
		}
		if list.Continue == "" {
			break
		}
		options.Continue = list.Continue
	}
	o.Printf("   a new list: %s\n", names(lesson.Must(o.pods.List(ctx, metav1.ListOptions{})).Items))
	o.PrintRequests(o.requests.Take())
	o.Printf("   All pages show the moment of the first one and have its resourceVersion: watch from there.\n\n")
}
