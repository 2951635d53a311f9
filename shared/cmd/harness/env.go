package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/cluster"
)

func newEnv() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell commands that point kubectl at the cluster",
		Long:  "Use it as: eval \"$(make env)\". Only shell commands go to standard output.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := cluster.KubeconfigPath()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "export KUBECONFIG=%s\n", quote(path))
			kubectl, own, err := findKubectl(cmd)
			if err != nil {
				return err
			}
			switch dir := filepath.Dir(kubectl); {
			case own == "" && !inPath(dir):
				// Last: the folder may hold more programs, and the machine's own come first.
				fmt.Fprintf(out, "export PATH=\"$PATH\":%s\n", quote(dir))
			case own != kubectl && own != "":
				// First, or the old one would be found.
				fmt.Fprintf(out, "export PATH=%s:\"$PATH\"\n", quote(dir))
			}
			return nil
		},
	}
}

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl",
		Short: "Print the path of kubectl, after putting one into the cache where the machine has none, or too old a one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, _, err := findKubectl(cmd)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}

// findKubectl returns the kubectl to use, and the one in PATH: the same, unless that is too old. Progress goes to standard
// error: standard output is for the shell.
func findKubectl(cmd *cobra.Command) (use, own string, err error) {
	if own, err = exec.LookPath("kubectl"); err == nil {
		old := oldKubectl(cmd.Context(), own)
		if old == "" {
			return own, own, nil
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "==> "+old+"; using one from the cache")
	} else {
		own = ""
	}
	dir, err := binaries.Ensure(cmd.Context(), cmd.ErrOrStderr(), "kubectl")
	if err != nil {
		return "", "", err
	}
	return filepath.Join(dir, "kubectl"), own, nil
}

// oldestKubectl is the first minor version of Kubernetes 1 whose `kubectl wait` has --for=create, which chapters use.
const oldestKubectl = 31

var kubectlVersion = regexp.MustCompile(`"gitVersion": *"v1\.(\d+)\.[^"]*"`)

// oldKubectl says that a kubectl is too old. One that does not tell its version is left to its user.
func oldKubectl(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "version", "--client", "--output=json").Output()
	if err != nil {
		return ""
	}
	found := kubectlVersion.FindSubmatch(said)
	if found == nil {
		return ""
	}
	if minor, err := strconv.Atoi(string(found[1])); err != nil || minor >= oldestKubectl {
		return ""
	}
	return fmt.Sprintf("%s is version 1.%s, too old for the chapters: they need 1.%d or later", path, found[1], oldestKubectl)
}

func newBinaries() *cobra.Command {
	return &cobra.Command{
		Use:       "binaries NAME…",
		Short:     "Print a folder that holds these programs, after making those that are missing",
		Long:      "Names: " + strings.Join(binaries.Names(), " "),
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: binaries.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printBinaries(cmd, args...)
		},
	}
}

func newAssets() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print the folder to use as KUBEBUILDER_ASSETS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printBinaries(cmd, "etcd", "kube-apiserver", "kubectl")
		},
	}
}

func printBinaries(cmd *cobra.Command, names ...string) error {
	dir, err := binaries.Ensure(cmd.Context(), cmd.ErrOrStderr(), names...)
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), dir+"\n")
	return err
}

func inPath(dir string) bool {
	return slices.Contains(filepath.SplitList(os.Getenv("PATH")), dir)
}

// quote makes a text one word of a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
