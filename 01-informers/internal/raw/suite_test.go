package raw

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) {
	// Most that is logged has no test to log to, and says what is expected.
	klog.SetLogger(klog.Logger{})
	testserver.Main(m)
}

// aFoo wants a Deployment.
func aFoo(name, deploymentName string) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "space", UID: types.UID("uid of " + name), ResourceVersion: "1"},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName},
	}
}

// pause lets time pass in a synctest bubble, where that takes none.
func pause(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of a bubble passes only while all in it wait
}

var leases = coordinationv1.Resource("leases")
