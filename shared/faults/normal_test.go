package faults

import (
	"reflect"
	"testing"
)

func TestAddressesThatTheAPIServerChoosesAreEqual(t *testing.T) {
	t.Parallel()
	service := func(address string) any {
		tr := &trial{state: &State{}}
		tr.names = newNames(tr)
		return tr.normalValue(map[string]any{"clusterIP": address, "clusterIPs": []any{address}}, 1)
	}
	if one, other := service("10.0.0.127"), service("10.0.0.247"); !reflect.DeepEqual(one, other) {
		t.Errorf("%v and %v are not equal", one, other)
	}
	if one, headless := service("10.0.0.127"), service("None"); reflect.DeepEqual(one, headless) {
		t.Errorf("a Service without an address is equal to one that has one")
	}
}

func TestNodePortsThatTheAPIServerChoosesAreEqual(t *testing.T) {
	t.Parallel()
	normal := func(port int64) any {
		tr := &trial{state: &State{taken: []int32{30200}}}
		tr.names = newNames(tr)
		return tr.normalValue(port, 1)
	}
	if one, other := normal(30000), normal(32767); one != other {
		t.Errorf("%v and %v are not equal", one, other)
	}
	for _, port := range []int64{30200, 29999, 32768, 80} {
		if one := normal(port); one == normal(30000) {
			t.Errorf("%d is equal to a port that the API server has chosen: %v", port, one)
		}
	}
}
