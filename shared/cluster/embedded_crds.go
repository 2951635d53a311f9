package cluster

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/deploy"
)

// installCRDs applies the CRDs of all stages before the controller manager starts: its garbage collector looks for new
// kinds every 30 seconds only, a constant, and until then nothing that is owned by an object of a new kind is deleted. A
// stage whose CRDs cannot be applied does not keep the cluster from the others: `make install` of that stage fails too.
func (p *plane) installCRDs(ctx context.Context, out io.Writer) error {
	stages, err := config.Stages()
	if err != nil {
		return err
	}
	cfg, err := restConfig(p.layout.kubeconfig(), p.context)
	if err != nil {
		return err
	}
	errs := make([]error, len(stages))
	var wait sync.WaitGroup
	for i, dir := range stages {
		wait.Go(func() {
			objects, err := deploy.Render(dir, "crd", nil)
			if err == nil {
				err = deploy.Apply(ctx, io.Discard, cfg, objects) // out is not for several at once
			}
			errs[i] = err
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, dir := range stages {
		if errs[i] != nil {
			fmt.Fprintf(out, "==> the CRDs of %s are not installed: %v\n", filepath.Base(dir), errs[i])
		}
	}
	return nil
}
