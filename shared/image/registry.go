package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"time"

	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// pullTimeout bounds what an image that is wanted from a registry may take: a machine that can reach none may
// not be told so.
const pullTimeout = 2 * time.Minute

// packaged says where static programs come from.
var packaged = map[string]string{"busybox": " (on Debian and Ubuntu that of `apt-get install busybox-static`)"}

// substitute returns a reference for an image that cannot be made here: the one that the stage's configuration names,
// which the engine has or pulls. Like those that are built it goes by its content: a node that knows a name does not
// look again. The error says what to install.
func substitute(ctx context.Context, out io.Writer, stageDir, name, target string, why error) (string, error) {
	refs, err := deploy.ImageRefs(stageDir)
	if err != nil {
		return "", err
	}
	found, err := engine.Find(ctx)
	if err != nil {
		return "", err
	}
	if _, err := use(); err != nil {
		return "", err
	}
	given := refs[name]
	id, err := imageID(ctx, found, given)
	if err != nil {
		err = step.Run(ctx, out, fmt.Sprintf("pulling %s (%v)", given, why), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, pullTimeout)
			defer cancel()
			if err := command(ctx, found, "pull", given); err != nil {
				return fmt.Errorf("%w, and %w: have a static %s in PATH%s, or %s in the engine", why, err, target, packaged[target], given)
			}
			id, err = imageID(ctx, found, given)
			return err
		})
	}
	if err != nil {
		return "", err
	}
	ref := repository(stageDir, target) + ":" + id
	if err := command(ctx, found, "tag", given, ref); err != nil {
		return "", err
	}
	prune(ctx, found, ref)
	return ref, nil
}

// imageID is the beginning of the hash of an image that the engine has.
func imageID(ctx context.Context, e *engine.Engine, ref string) (string, error) {
	id, err := run(ctx, e.Name, "image", "inspect", "--format", "{{.Id}}", ref)
	if err != nil {
		return "", fmt.Errorf("looking for the image %s: %w", ref, err)
	}
	return short(id), nil
}

// short is the beginning of an image's hash.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), 12)]
}

// push gives an image of the engine the name by which the nodes pull it, and pushes it there.
func push(ctx context.Context, ref, as string) error {
	found, err := engine.Find(ctx)
	if err != nil {
		return err
	}
	if err := command(ctx, found, "tag", ref, as); err != nil {
		return err
	}
	// Here it has a name already.
	defer func() { _, _ = run(ctx, found.Name, "image", "rm", as) }()
	args := []string{"push", as}
	if found.Name == "podman" && isLoopback(as) {
		// Docker, unasked, takes no registry of this machine for one with a certificate.
		args = []string{"push", "--tls-verify=false", as}
	}
	if err := command(ctx, found, args...); err != nil {
		return fmt.Errorf("%w: the registry has to answer there, and %s has to be logged in or allowed to do without", err, found.Name)
	}
	return nil
}

func isLoopback(ref string) bool {
	host, _, _ := strings.Cut(ref, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// command runs the engine's client; the error tells what that said.
func command(ctx context.Context, e *engine.Engine, args ...string) error {
	output, err := exec.CommandContext(ctx, e.Name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s %s: %w: %s", e.Name, strings.Join(args, " "), errors.Join(err, context.Cause(ctx)), strings.TrimSpace(string(output)))
	}
	return nil
}

// validPrefix is what a reference may begin with: a host, maybe a port, and folders.
var validPrefix = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// registryPrefix checks the name of a registry.
func registryPrefix(registry string) (string, error) {
	prefix := strings.TrimSuffix(registry, "/")
	if !validPrefix.MatchString(prefix) {
		return "", fmt.Errorf("the registry %q is none that an image's name can begin with: want HOST:PORT or HOST/FOLDER, without https://", registry)
	}
	return prefix, nil
}

// lastPart is a reference without its registry and folders.
func lastPart(ref string) string { return path.Base(ref) }
