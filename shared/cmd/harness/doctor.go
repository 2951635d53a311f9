package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/spf13/cobra"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
	"example.com/workbook/shared/engine"
)

// Below these, in GiB, a kind cluster with a stage on it does not fit comfortably.
const (
	enoughMemory = 4
	enoughDisk   = 15
	enoughTemp   = 2
)

// finding is one line of the doctor's report. cost says what the reader goes without, or waits for.
type finding struct {
	what string
	ok   bool
	has  string
	cost string
}

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Report what this machine has and what is missing, and what does not work without it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			checks := []func(context.Context) finding{
				checkGo, checkProgram("make", "nothing works without it"),
				checkProgram("git", "`make starter` and `make verify` need it"),
				checkEngine, checkNodeImage, checkProgram("bash", "no kind cluster: its node image is found by a script"),
				checkImages, checkKubectl, checkBinaries, checkChromium,
				checkProgram("busybox", "tests of shell scripts use one shell fewer; on Debian and Ubuntu: apt-get install busybox-static"),
				checkProgram("curl", "some chapters use it"),
				checkProgram("npm", "`make docs-site` shows diagrams as text"),
				checkMemory, checkDisk, checkTemp,
			}
			for _, check := range checks {
				printFinding(out, check(ctx))
			}
			kind, err := cluster.Choose(ctx, "")
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "\nend-to-end suites use the %s cluster here; CLUSTER=kind or CLUSTER=embedded chooses another\n", kind)
			return nil
		},
	}
}

func printFinding(out io.Writer, f finding) {
	mark, text := "has  ", f.has
	if !f.ok {
		mark = "lacks"
		text = strings.TrimPrefix(f.has+"; "+f.cost, "; ")
	}
	fmt.Fprintf(out, "%s  %-16s %s\n", mark, f.what, text)
}

func checkGo(context.Context) finding {
	return finding{"Go", true, runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, ""}
}

func checkProgram(name, cost string) func(context.Context) finding {
	return func(context.Context) finding {
		path, err := exec.LookPath(name)
		return finding{name, err == nil, path, cost}
	}
}

func checkEngine(ctx context.Context) finding {
	found, err := engine.Find(ctx)
	if err != nil {
		return finding{"container engine", false, "", "no kind cluster, so nothing that needs a running container; " + err.Error()}
	}
	return finding{"container engine", true, found.Name + " responds", ""}
}

func checkNodeImage(ctx context.Context) finding {
	const name = "node image"
	found, err := engine.Find(ctx)
	if err != nil {
		return finding{name, false, "", "it needs an engine"}
	}
	// What is pulled by its digest is listed without its tag.
	pulled := config.Get("KIND_NODE_IMAGE")
	if exec.CommandContext(ctx, found.Name, "image", "inspect", pulled).Run() == nil {
		return finding{name, true, pulled, ""}
	}
	// One that was built here carries the version in its tag.
	output, err := exec.CommandContext(ctx, found.Name, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}").Output()
	if err == nil {
		for line := range strings.Lines(string(output)) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "node:") && strings.Contains(line, config.Get("KUBERNETES_VERSION")) {
				return finding{name, true, line, ""}
			}
		}
	}
	return finding{name, false, "", "the first kind cluster pulls it, or builds it if it cannot be pulled; `make node-image` does that now"}
}

func checkKubectl(ctx context.Context) finding {
	path, err := exec.LookPath("kubectl")
	if err == nil {
		if old := oldKubectl(ctx, path); old != "" {
			return finding{"kubectl", false, "", old + "; `eval \"$(make env)\"` uses one from the cache"}
		}
	}
	return finding{"kubectl", err == nil, path, "`make kubectl` downloads or builds one into the cache; without it one test is skipped"}
}

func checkBinaries(context.Context) finding {
	const name = "control plane"
	cache, err := config.CacheDir()
	if err != nil {
		return finding{name, false, err.Error(), "unknown"}
	}
	programs := map[string]string{
		"etcd": "ETCD_VERSION", "kwok": "KWOK_VERSION", "kube-apiserver": "KUBERNETES_VERSION", "kubectl": "KUBERNETES_VERSION",
		"kube-controller-manager": "KUBERNETES_VERSION", "kube-scheduler": "KUBERNETES_VERSION",
	}
	var missing []string
	for program, version := range programs {
		// Where package binaries keeps them.
		path := filepath.Join(cache, "binaries", runtime.GOOS+"-"+runtime.GOARCH, program+"-"+config.Get(version))
		// An empty one is made again.
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			missing = append(missing, program)
		}
	}
	if len(missing) == 0 {
		return finding{name, true, "the programs of the embedded cluster, and kubectl, are in the cache", ""}
	}
	slices.Sort(missing)
	return finding{name, false, "", "not in the cache: " + strings.Join(missing, ", ") +
		"; they are downloaded or built when they are first needed, which takes minutes"}
}

// checkChromium accepts what the tests of pages accept.
func checkChromium(context.Context) finding {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return finding{"Chromium", true, path, ""}
		}
	}
	return finding{"Chromium", false, "", "the tests of pages are skipped; on Debian and Ubuntu: apt-get install chromium"}
}

func checkMemory(ctx context.Context) finding {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return finding{"memory", false, err.Error(), "unknown"}
	}
	free := float64(m.Available) / (1 << 30)
	return finding{"memory", free >= enoughMemory, fmt.Sprintf("%.1f GiB available", free), fmt.Sprintf("a kind cluster with a stage needs %d GiB", enoughMemory)}
}

func checkDisk(ctx context.Context) finding {
	cache, err := config.CacheDir()
	if err != nil {
		return finding{"disk", false, err.Error(), "unknown"}
	}
	usage, err := disk.UsageWithContext(ctx, cache)
	if err != nil {
		return finding{"disk", false, err.Error(), "unknown"}
	}
	free := float64(usage.Free) / (1 << 30)
	return finding{"disk", free >= enoughDisk, fmt.Sprintf("%.0f GiB free at %s", free, filepath.Dir(cache)),
		fmt.Sprintf("Go's caches, images and binaries need %d GiB", enoughDisk)}
}

// checkTemp looks at the folder of temporary files: the go command and tests run programs that they write there.
func checkTemp(ctx context.Context) finding {
	const name = "temporary files"
	const remedy = "set TMPDIR to a folder of a disk, or GOTMPDIR for what the go command itself runs and links"
	dir := os.TempDir()
	if err := runsIn(ctx, dir); err != nil {
		return finding{name, false, dir, fmt.Sprintf("no program that is written there can be run (%v), as go run and go test do: %s", err, remedy)}
	}
	usage, err := disk.UsageWithContext(ctx, dir)
	if err != nil {
		return finding{name, false, err.Error(), "unknown"}
	}
	free := float64(usage.Free) / (1 << 30)
	return finding{name, free >= enoughTemp, fmt.Sprintf("%.1f GiB free at %s", free, dir),
		fmt.Sprintf("the go command needs %d GiB where it links programs: %s", enoughTemp, remedy)}
}

// runsIn writes a program to a folder, and runs it: file systems may be mounted with noexec.
func runsIn(ctx context.Context, dir string) error {
	file, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString("#!/bin/sh\n")
	if err := errors.Join(err, file.Chmod(0o700), file.Close()); err != nil {
		return err
	}
	return exec.CommandContext(ctx, file.Name()).Run()
}
