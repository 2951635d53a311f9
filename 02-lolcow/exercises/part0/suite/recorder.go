package suite

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"example.com/workbook/shared/exercise/check"
)

// SetRecorder puts a recorder into the field Recorder of a reconciler, if it has one: before step 16b there is none.
func SetRecorder(reconciler any, recorder events.EventRecorder) {
	setField(reconciler, "Recorder", recorder)
}

// setField sets a field of a reconciler, if it has one of this name and type.
func setField(reconciler any, name string, value any) {
	field := fieldOf(reconciler, name)
	if field.CanSet() && reflect.TypeOf(value).AssignableTo(field.Type()) {
		field.Set(reflect.ValueOf(value))
	}
}

// fieldOf is a field of a reconciler. It is not valid if there is none.
func fieldOf(reconciler any, name string) reflect.Value {
	pointer := reflect.ValueOf(reconciler)
	if pointer.Kind() != reflect.Pointer {
		return reflect.Value{}
	}
	return pointer.Elem().FieldByName(name)
}

// otherType is the type of a field that is there, and cannot have such a value; nil if it can, or is not there.
func otherType(reconciler any, name string, value any) reflect.Type {
	field := fieldOf(reconciler, name)
	if !field.IsValid() || reflect.TypeOf(value).AssignableTo(field.Type()) {
		return nil
	}
	return field.Type()
}

// announcement is one Event, as the operator gives it to its recorder.
type announcement struct{ eventType, reason, action, note string }

// recorder notes what the operator announces. An API server would combine Events that are alike, and some might not arrive.
type recorder struct {
	b *check.B

	mu  sync.Mutex
	all []announcement
}

// Eventf notes an Event.
func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	one := announcement{eventType, reason, action, fmt.Sprintf(note, args...)}
	r.b.Event("  Event %s %s: %s", one.eventType, one.reason, one.note)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// AnnotatedEventf notes an Event: the recorder of a manager has this method too.
func (r *recorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, note string, args ...any) {
	r.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// of returns the Events with a reason.
func (r *recorder) of(reason string) []announcement {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []announcement
	for _, one := range r.all {
		if one.reason == reason {
			found = append(found, one)
		}
	}
	return found
}
