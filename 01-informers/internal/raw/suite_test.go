package raw

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) {
	// Most lines have no test to be logged to, and are expected.
	klog.SetLogger(klog.Logger{})
	testserver.Main(m)
}

// aFoo is a Foo that is not created yet.
func aFoo(name, deploymentName string) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "space", UID: types.UID("uid of " + name), ResourceVersion: "1"},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName},
	}
}

// pause advances the clock of a synctest bubble.
func pause(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of a bubble advances only while all its goroutines wait
}
