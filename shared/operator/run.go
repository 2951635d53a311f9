package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/image"
	"example.com/workbook/shared/step"
)

// Options say which operator to run as a local process, and against what.
type Options struct {
	Cluster  cluster.Cluster
	StageDir string
	// Overlay is the folder of the stage's configuration to use; empty: deploy.DefaultOverlay.
	Overlay string
	Images  deploy.Images
	// Log is the file that the operator's output is appended to; replica 2 gets one beside it.
	Log string
	// Output, if set, gets the operator's output too.
	Output io.Writer
	// Args follow the arguments of the manifest and win over them.
	Args []string
}

// Run applies the stage's configuration without the operator's Deployment, so that its CRDs, its
// ServiceAccount and its role are there, builds the operator for this machine and starts one replica
// with the manifest's arguments and environment and a token of that ServiceAccount. If the Deployment is
// in the cluster, it is scaled to 0 until Close: there must not be two writers.
func Run(ctx context.Context, out io.Writer, o Options) (*Process, error) {
	p := &Process{options: o}
	p.login = p.newToken
	var err error
	if p.manifest, err = readManifest(o.StageDir, o.Overlay, o.Images); err != nil {
		return nil, err
	}
	stage := filepath.Base(absolute(o.StageDir))
	err = step.Run(ctx, out, "building the operator of "+stage, func(ctx context.Context) error {
		p.binary, err = image.Binary(ctx, o.StageDir, p.manifest.program(o.StageDir), runtime.GOOS, runtime.GOARCH)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = step.Run(ctx, out, fmt.Sprintf("applying %d objects and starting the operator as %s", len(p.manifest.rest), p.manifest.user()), func(ctx context.Context) error {
		if err := p.prepare(ctx, out, stage); err != nil {
			return err
		}
		return p.Start(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// prepare makes the operator's surroundings in the cluster and its credentials on this machine.
func (p *Process) prepare(ctx context.Context, out io.Writer, stage string) error {
	help, err := exec.CommandContext(ctx, p.binary, "--help").CombinedOutput()
	if err != nil && len(help) == 0 {
		return fmt.Errorf("asking the operator for its flags: %w", err)
	}
	p.help = string(help)
	if err := p.setupConversions(ctx); err != nil {
		return err
	}
	cfg, err := p.options.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	held, err := deploy.Held(ctx, cfg, p.manifest.rest)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		if err := p.apply(ctx, out, cfg); err != nil {
			return err
		}
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := p.setAside(ctx, out, clients); err != nil {
		return err
	}
	if err := p.endLeftover(ctx, out, stage); err != nil {
		return err
	}
	repo, err := config.Repo()
	if err != nil {
		return err
	}
	if err := p.placeKubeconfig(repo, stage); err != nil {
		return err
	}
	if len(held) > 0 {
		return p.releaseCRDs(ctx, out, cfg, held)
	}
	return nil
}

// apply makes what the operator needs in the cluster.
func (p *Process) apply(ctx context.Context, out io.Writer, cfg *rest.Config) error {
	if err := deploy.Apply(ctx, out, cfg, p.manifest.rest); err != nil {
		return err
	}
	return deploy.WaitOwnable(ctx, out, cfg, p.manifest.rest)
}

// releaseCRDs runs the operator until CRDs that are being deleted are gone, and applies them anew: objects of their kinds
// have finalizers that as a rule only the operator removes. It ends then, because its watches are of kinds that are gone.
func (p *Process) releaseCRDs(ctx context.Context, out io.Writer, cfg *rest.Config, held []*unstructured.Unstructured) error {
	for _, crd := range held {
		fmt.Fprintf(out, "==> CRD %s is being deleted, and objects of its kind have finalizers: the operator runs until it is gone, and again with a new one\n", crd.GetName())
	}
	others := slices.DeleteFunc(slices.Clone(p.manifest.rest), func(u *unstructured.Unstructured) bool { return slices.Contains(held, u) })
	if err := deploy.Apply(ctx, out, cfg, others); err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	if err := p.apply(ctx, out, cfg); err != nil {
		return err // Run's Close ends the operator
	}
	return p.Stop(ctx)
}

// placeKubeconfig chooses a file for each cluster: an operator must not start on the one that another run works on. It
// is also .kube/operator-STAGE, as long as no other run of the stage begins.
func (p *Process) placeKubeconfig(repo, stage string) error {
	link := filepath.Join(repo, ".kube", "operator-"+stage)
	p.kubeconfig = link + "." + url.PathEscape(p.options.Cluster.Context())
	next := p.kubeconfig + ".link"
	err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.RemoveAll(next), os.Symlink(filepath.Base(p.kubeconfig), next), os.Rename(next, link))
	if err != nil {
		return fmt.Errorf("placing the operator's kubeconfig: %w", err)
	}
	return nil
}

// newToken writes a kubeconfig with a new token of the operator's ServiceAccount, and returns the id
// that the API server's audit log has for it.
func (p *Process) newToken(ctx context.Context, kubeconfig string) (credential string, err error) {
	cfg, err := p.options.Cluster.RESTConfig()
	if err != nil {
		return "", err
	}
	token, err := Token(ctx, cfg, p.Namespace(), p.ServiceAccount())
	if err != nil {
		return "", err
	}
	if err := cluster.WriteTokenKubeconfig(kubeconfig, p.options.Cluster, token); err != nil {
		return "", err
	}
	return credentialOf(token)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
