//go:build start

package claim

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/03-flux/exercises/internal/databases"
)

// Setup adds the controllers of both kinds to a manager. What they need of the cloud they ask cloud for.
func Setup(mgr ctrl.Manager, cloud databases.Cloud, defaults databases.Defaults) error {
	// TODO: everything.
	return nil
}
