//go:build start

package predict

const (
	stays   = "stays"
	changes = "changes"
)

// Table predicts what a change does to metadata.generation and to metadata.resourceVersion of its object: each stays or changes.
// TODO: stays or changes, for each question mark.
var Table = map[string]struct{ Generation, ResourceVersion string }{
	// The finalizer example.com/hold is added.
	"finalizer": {"?", "?"},
	// A merge patch sets spec.greeting to Moo, which it is.
	"same-greeting": {"?", "?"},
	// A merge patch removes spec.replicas.
	"no-replicas": {"?", "?"},
	// A merge patch of the status subresource sets status.port to 31999.
	"status": {"?", "?"},
	// A merge patch of the Lolcow itself sets status.port to 31999.
	"status-in-object": {"?", "?"},
	// Another client, as field manager alice, applies spec.greeting with the value that it has.
	"second-manager": {"?", "?"},
	// The Lolcow, which has a finalizer, is deleted.
	"deletion": {"?", "?"},
	// An annotation is added to a Deployment.
	"annotation-of-deployment": {"?", "?"},
}
