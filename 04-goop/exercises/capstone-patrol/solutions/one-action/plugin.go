package patrol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// pause is how long the plugin waits after a watch has ended.
const pause = 200 * time.Millisecond

// The exit codes.
const (
	codeComplete    = 0
	codeFailed      = 1
	codeGone        = 2
	codeTimeout     = 124
	codeInterrupted = 130
	codeNone        = -1
)

// Plugin is kubectl patrol NAME: it follows a Patrol until its end, writes to out, and returns an exit code.
func Plugin(ctx context.Context, c client.WithWatch, name string, out io.Writer) int {
	f := &follower{name: name, out: out}
	for {
		code, err := f.round(ctx, c)
		switch {
		case code != codeNone:
			return code
		case apierrors.IsForbidden(err):
			fmt.Fprintln(out, err)
			return codeGone
		}
		// Any other error may be one of this moment.
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return codeTimeout
			}
			return codeInterrupted
		case <-time.After(pause):
		}
	}
}

// follower is what the plugin has seen.
type follower struct {
	name string
	out  io.Writer
	uid  types.UID
	// written is how many nodes were written.
	written int
}

// round lists once, and watches once.
func (f *follower) round(ctx context.Context, c client.WithWatch) (int, error) {
	one := client.MatchingFields{metav1.ObjectNameField: f.name}
	var list patrols.PatrolList
	if err := c.List(ctx, &list, one); err != nil {
		return codeNone, err
	}
	if len(list.Items) == 0 {
		return codeGone, nil
	}
	if code := f.see(&list.Items[0]); code != codeNone {
		return code, nil
	}
	w, err := c.Watch(ctx, &patrols.PatrolList{}, one, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return codeNone, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		patrol, isPatrol := event.Object.(*patrols.Patrol)
		if !isPatrol {
			return codeNone, nil
		}
		if event.Type == watch.Deleted {
			return codeGone, nil
		}
		if code := f.see(patrol); code != codeNone {
			return code, nil
		}
	}
	return codeNone, nil
}

// see writes the nodes that are new, and returns an exit code if it is the end.
func (f *follower) see(patrol *patrols.Patrol) int {
	if f.uid == "" {
		f.uid = patrol.UID
	}
	if patrol.UID != f.uid {
		return codeGone
	}
	for ; f.written < len(patrol.Status.Nodes); f.written++ {
		node := patrol.Status.Nodes[f.written]
		fmt.Fprintln(f.out, node.Name, node.Result)
	}
	switch {
	case apimeta.IsStatusConditionTrue(patrol.Status.Conditions, patrols.ConditionFailed):
		return codeFailed
	case apimeta.IsStatusConditionTrue(patrol.Status.Conditions, patrols.ConditionComplete):
		return codeComplete
	}
	return codeNone
}
