package managed

import (
	"errors"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addProbes adds /healthz, that the process lives, and /readyz, that its caches are full, whether it is the leader or not.
func addProbes(mgr ctrl.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping),
		mgr.AddReadyzCheck("readyz", func(request *http.Request) error {
			if !mgr.GetCache().WaitForCacheSync(request.Context()) {
				return errors.New("the caches are not full yet")
			}
			return nil
		}),
	)
}
