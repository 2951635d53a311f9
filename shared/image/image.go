package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
	"example.com/workbook/shared/step"
)

// Build makes one target of the stage's Dockerfile and returns its reference, whose tag is a hash of Dockerfile, build
// arguments (NAME=VALUE) and the programs that the target copies from bin/linux-${TARGETARCH}/: unchanged code gives
// the same reference and builds nothing. Those programs are the stage's own, and by name what this machine has: such
// a one has to be static. A target that holds more (COPY from elsewhere, ADD, another target) is built each time, by the
// engine's own cache, and its tag is the image's hash.
func Build(ctx context.Context, out io.Writer, stageDir, target string, buildArgs ...string) (ref string, err error) {
	found, err := engine.Find(ctx)
	if err != nil {
		return "", err
	}
	if _, err := use(); err != nil {
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
		from, earlier, err := findTarget(stageDir, target)
		if err != nil {
			return err
		}
		binaries, err := programs(ctx, stageDir, arch, from.programs)
		if err != nil {
			return err
		}
		if ref, err = reference(stageDir, target, binaries, buildArgs...); err != nil {
			return err
		}
		if _, err := run(ctx, found.Name, "image", "inspect", ref); err == nil && !from.open {
			return nil
		}
		if _, err := programs(ctx, stageDir, arch, earlier); err != nil {
			return err
		}
		args := []string{"TARGETARCH=" + arch}
		args = append(args, buildArgs...)
		if from.open {
			ref, err = buildByID(ctx, found, stageDir, target, args)
		} else {
			err = build(ctx, found, stageDir, target, args, "--tag", ref)
		}
		if err != nil {
			return err
		}
		prune(ctx, found, ref)
		return nil
	})
	return ref, err
}

// buildByID names an image by its own hash.
func buildByID(ctx context.Context, e *engine.Engine, stageDir, target string, buildArgs []string) (ref string, err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", fmt.Errorf("building image %s: %w", target, err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "id")
	if err := build(ctx, e, stageDir, target, buildArgs, "--iidfile", file); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("building image %s: %w", target, err)
	}
	id := strings.TrimSpace(string(text))
	ref = repository(stageDir, target) + ":" + short(id)
	return ref, command(ctx, e, "tag", id, ref)
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

// reference names an image by its content. The registry is a reserved name: no engine can pull it by
// mistake.
func reference(stageDir, target string, binaries []string, buildArgs ...string) (string, error) {
	h := sha256.New()
	for _, arg := range buildArgs {
		fmt.Fprintln(h, arg)
	}
	dockerfile, err := os.ReadFile(filepath.Join(stageDir, "Dockerfile"))
	if err != nil {
		return "", fmt.Errorf("hashing image %s: %w", target, err)
	}
	h.Write(dockerfile)
	for _, path := range binaries {
		if err := hashProgram(h, path); err != nil {
			return "", fmt.Errorf("hashing image %s: %w", target, err)
		}
	}
	tag := hex.EncodeToString(h.Sum(nil))[:12]
	return fmt.Sprintf("%s:%s", repository(stageDir, target), tag), nil
}

// hashProgram takes the mode into account, which the image has too.
func hashProgram(h io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err // it names the file
	}
	fmt.Fprintln(h, info.Mode().Perm())
	_, err = io.Copy(h, f)
	return err
}

// notInNames is what a folder may be called and an image may not.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func repository(stageDir, target string) string {
	folder := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(filepath.Base(stageDir)), "-"), "-")
	return fmt.Sprintf("example.com/%s/%s-%s", config.Project(), cmp.Or(folder, "stage"), strings.ToLower(target))
}

// build has the engine build a target. name is a flag for what to call it.
func build(ctx context.Context, e *engine.Engine, stageDir, target string, buildArgs []string, name ...string) error {
	args := append([]string{"build", "--target", target}, name...)
	for _, arg := range buildArgs {
		args = append(args, "--build-arg", arg)
	}
	cmd := exec.CommandContext(ctx, e.Name, append(args, ".")...)
	cmd.Dir = stageDir
	cmd.Env = os.Environ()
	if _, err := run(ctx, e.Name, "buildx", "version"); err != nil {
		// A docker client without buildx fails to build unless it is set to use the old builder.
		cmd.Env = append(cmd.Env, "DOCKER_BUILDKIT=0")
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building image %s of %s: %w\n%s", target, filepath.Base(stageDir), err, strings.TrimSpace(string(output)))
	}
	return nil
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
