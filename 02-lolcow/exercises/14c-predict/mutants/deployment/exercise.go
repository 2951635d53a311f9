package predict

const (
	stays   = "stays"
	changes = "changes"
)

// Table predicts what a change does to metadata.generation and to metadata.resourceVersion of its object: each stays or changes.
var Table = map[string]struct{ Generation, ResourceVersion string }{
	// The finalizer example.com/hold is added.
	"finalizer": {stays, changes},
	// A merge patch sets spec.greeting to Moo, which it is.
	"same-greeting": {stays, stays},
	// A merge patch removes spec.replicas.
	"no-replicas": {stays, stays},
	// A merge patch of the status subresource sets status.port to 31999.
	"status": {stays, changes},
	// A merge patch of the Lolcow itself sets status.port to 31999.
	"status-in-object": {stays, stays},
	// Another client, as field manager alice, applies spec.greeting with the value that it has.
	"second-manager": {stays, changes},
	// The Lolcow, which has a finalizer, is deleted.
	"deletion": {changes, changes},
	// An annotation is added to a Deployment.
	"annotation-of-deployment": {stays, changes},
}
