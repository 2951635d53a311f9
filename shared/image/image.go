package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// Build makes one target of the stage's Dockerfile and returns its reference, whose tag is a hash of Dockerfile, build
// arguments (NAME=VALUE) and the programs that the target copies from bin/linux-${TARGETARCH}/: unchanged code gives
// the same reference and builds nothing. Those programs are the stage's own, and by name what this machine has: such
// a one has to be static.
func Build(ctx context.Context, out io.Writer, stageDir, target string, buildArgs ...string) (ref string, err error) {
	found, err := engine.Find(ctx)
	if err != nil {
		return "", err
	}
	stageDir, err = filepath.Abs(stageDir)
	if err != nil {
		return "", fmt.Errorf("finding the stage: %w", err)
	}
	arch, err := architecture(ctx, found)
	if err != nil {
		return "", err
	}
	err = step.Run(ctx, out, fmt.Sprintf("building image %s of %s", target, filepath.Base(stageDir)), func(ctx context.Context) error {
		own, earlier, err := programsOf(stageDir, target)
		if err != nil {
			return err
		}
		binaries, err := programs(ctx, stageDir, arch, own)
		if err != nil {
			return err
		}
		if ref, err = reference(stageDir, target, binaries, buildArgs...); err != nil {
			return err
		}
		if _, err := run(ctx, found.Name, "image", "inspect", ref); err == nil {
			return nil
		}
		if _, err := programs(ctx, stageDir, arch, earlier); err != nil {
			return err
		}
		buildArgs = append([]string{"TARGETARCH=" + arch}, buildArgs...)
		if err := build(ctx, found, stageDir, target, ref, buildArgs); err != nil {
			return err
		}
		prune(ctx, found, ref)
		return nil
	})
	return ref, err
}

// programs puts programs where the Dockerfile expects them, and returns their paths.
func programs(ctx context.Context, stageDir, arch string, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		path, err := program(ctx, stageDir, name, arch)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// reference names an image by its content. The registry is a reserved name: nobody can pull it by
// mistake.
func reference(stageDir, target string, binaries []string, buildArgs ...string) (string, error) {
	h := sha256.New()
	for _, arg := range buildArgs {
		fmt.Fprintln(h, arg)
	}
	for _, path := range append([]string{filepath.Join(stageDir, "Dockerfile")}, binaries...) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("hashing image %s: %w", target, err)
		}
		defer f.Close()
		if _, err := io.Copy(h, f); err != nil {
			return "", fmt.Errorf("hashing image %s: %w", target, err)
		}
	}
	tag := hex.EncodeToString(h.Sum(nil))[:12]
	return fmt.Sprintf("%s:%s", repository(stageDir, target), tag), nil
}

func repository(stageDir, target string) string {
	return strings.ToLower(fmt.Sprintf("example.com/%s/%s-%s", config.Project(), filepath.Base(stageDir), target))
}

func build(ctx context.Context, e *engine.Engine, stageDir, target, ref string, buildArgs []string) error {
	args := []string{"build", "--target", target, "--tag", ref}
	for _, arg := range buildArgs {
		args = append(args, "--build-arg", arg)
	}
	cmd := exec.CommandContext(ctx, e.Name, append(args, ".")...)
	cmd.Dir = stageDir
	cmd.Env = os.Environ()
	if _, err := run(ctx, e.Name, "buildx", "version"); err != nil {
		// A docker client without buildx refuses to build unless it is told to use the old builder.
		cmd.Env = append(cmd.Env, "DOCKER_BUILDKIT=0")
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building image %s: %w\n%s", ref, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// prune removes what earlier code gave for the same target: nothing would ever use it again, and each
// edit leaves one. One that a container uses, or that cannot be removed, stays.
func prune(ctx context.Context, e *engine.Engine, ref string) {
	repository := ref[:strings.LastIndex(ref, ":")]
	list, err := run(ctx, e.Name, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository)
	if err != nil {
		return
	}
	for line := range strings.Lines(list) {
		if old := strings.TrimSpace(line); old != ref {
			_, _ = run(ctx, e.Name, "image", "rm", old)
		}
	}
}

// architecture is the engine's, in Go's words: on a Mac, that of the virtual machine.
func architecture(ctx context.Context, e *engine.Engine) (string, error) {
	format := "{{.Server.Arch}}"
	command := "version"
	if e.Name == "podman" {
		command, format = "info", "{{.Host.Arch}}"
	}
	arch, err := run(ctx, e.Name, command, "--format", format)
	if err != nil {
		return "", fmt.Errorf("asking %s for its architecture: %w", e.Name, err)
	}
	return arch, nil
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).Output()
	return strings.TrimSpace(string(output)), err
}
