package raw

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const (
	// ownerIndex finds the Deployments that an object is the controller of, by that object's uid.
	ownerIndex = "controller-uid"
	// deploymentNameIndex finds the Foos whose spec names a Deployment, by its namespace and name.
	deploymentNameIndex = "deploymentName"
)

func indexOwner(deployment *appsv1.Deployment) ([]string, error) {
	if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func indexDeploymentName(f *v1alpha1.Foo) ([]string, error) {
	return []string{cache.NewObjectName(f.Namespace, f.Spec.DeploymentName).String()}, nil
}

// keyOf is the key of a Foo in the queue.
func keyOf(f *v1alpha1.Foo) cache.ObjectName { return cache.MetaObjectToName(f) }
