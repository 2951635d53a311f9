package e2e

import (
	"context"

	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/image"
)

// BuildImage builds an image that only specs use, and loads it into the nodes: a target of the Dockerfile in a folder
// of its own, as seen from the suite's, such as "../standin". It returns the reference for pods; on an embedded
// cluster that is only a name. See image.ForTest.
func (e *Env) BuildImage(ctx context.Context, dir, target string) (ref string, err error) {
	return image.ForTest(ctx, e.out, e.Cluster, dir, target)
}

// LoadImage has specs use an image by its name: it is loaded into the nodes if the engine of this machine has
// it, and otherwise left for them to pull. It returns the reference for pods, which need not be the name. See
// image.Given.
func (e *Env) LoadImage(ctx context.Context, name string) (ref string, err error) {
	return image.Given(ctx, e.out, e.Cluster, name)
}

// PushImages pushes the stage's images to a registry, and returns their references there, for deploy.Render: the
// operator of a spec that is deployed from a registry. See image.ForRegistry.
func (e *Env) PushImages(ctx context.Context, registry string) (deploy.Images, error) {
	return image.ForRegistry(ctx, e.out, e.Cluster, e.Stage.Dir, e.Stage.Images, registry)
}
