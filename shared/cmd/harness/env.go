package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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
			kubectl, err := findKubectl(cmd)
			if err != nil {
				return err
			}
			if dir := filepath.Dir(kubectl); !inPath(dir) {
				// Last: the folder may hold more programs, and the machine's own come first.
				fmt.Fprintf(out, "export PATH=\"$PATH\":%s\n", quote(dir))
			}
			return nil
		},
	}
}

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl",
		Short: "Print the path of kubectl, after putting one into the cache where the machine has none",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := findKubectl(cmd)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}

// findKubectl prefers the machine's own kubectl. Progress goes to standard error: standard output
// is for the shell.
func findKubectl(cmd *cobra.Command) (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	dir, err := binaries.Ensure(cmd.Context(), cmd.ErrOrStderr(), "kubectl")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "kubectl"), nil
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
