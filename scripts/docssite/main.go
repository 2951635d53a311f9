// Command docssite makes a static site of the book in docs/: it says what the pages are, Hugo renders them, and what
// Hugo does not do (the index of the search, the script that draws diagrams) is added. Whatever file of the repository
// the book links to has its page too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docssite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("docssite", flag.ContinueOnError)
	root := flags.String("root", "../..", "the repository")
	dest := flags.String("dest", "", "the folder of the site; _artifacts/site of the repository, if empty")
	listen := flags.String("serve", "", "serve the site at this address when it is made, as localhost:8000")
	if err := flags.Parse(args); err != nil {
		return err
	}
	repo, err := filepath.Abs(*root)
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	if *dest == "" {
		*dest = filepath.Join(repo, "_artifacts", "site")
	}
	if err := build(ctx, out, repo, *dest); err != nil {
		return err
	}
	if *listen == "" {
		return nil
	}
	return serve(ctx, out, *listen, siteHandler(*dest, repo))
}

// build makes the site in dest, which is replaced as a whole when all went well.
func build(ctx context.Context, out io.Writer, repo, dest string) error {
	begin := time.Now()
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return fmt.Errorf("making a folder for the site: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dest), "site-*.work")
	if err != nil {
		return fmt.Errorf("making a folder for Hugo: %w", err)
	}
	defer os.RemoveAll(work)
	files, err := listFiles(ctx, repo)
	if err != nil {
		return err
	}
	pages, err := collect(os.DirFS(repo), files)
	if err != nil {
		return err
	}
	if err := writeProject(work, pages); err != nil {
		return err
	}
	hugo, err := findHugo(ctx, out, repo)
	if err != nil {
		return err
	}
	if err := writeColours(ctx, hugo, work); err != nil {
		return err
	}
	site := filepath.Join(work, "public")
	if err := command(ctx, hugo, "--source", work, "--destination", site, "--logLevel", "warn", "--panicOnWarning", "--quiet").Run(); err != nil {
		return fmt.Errorf("rendering the pages with Hugo: %w", err)
	}
	if err := addMermaid(ctx, out, site); err != nil {
		return err
	}
	if err := writeIndex(site, pages); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dest), os.Rename(site, dest)); err != nil {
		return fmt.Errorf("putting the site where it belongs: %w", err)
	}
	fmt.Fprintf(out, "%d pages in %s: open %s\n", len(pages), time.Since(begin).Round(100*time.Millisecond), filepath.Join(dest, "index.html"))
	return nil
}

// findHugo finds Hugo, which Go builds once, from the module that pins it.
func findHugo(ctx context.Context, out io.Writer, repo string) (string, error) {
	slow := time.AfterFunc(5*time.Second, func() { fmt.Fprintln(out, "building Hugo, once: some minutes on 2 cores") })
	defer slow.Stop()
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(repo, "scripts", "tools", "hugo"), "tool", "-n", "hugo")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building Hugo: %w", err)
	}
	return strings.TrimSpace(string(path)), nil
}

// writeColours writes the colours of code: light ones, and dark ones for readers who like it dark.
func writeColours(ctx context.Context, hugo, work string) error {
	var css strings.Builder
	// Each in its own condition: what one of them leaves as it is must not have the other's colour.
	for _, scheme := range []struct{ style, preference string }{{"github", "light"}, {"github-dark", "dark"}} {
		styles, err := exec.CommandContext(ctx, hugo, "gen", "chromastyles", "--omitClassComments", "--style="+scheme.style).Output()
		if err != nil {
			return fmt.Errorf("asking Hugo for the colours of %s: %w", scheme.style, err)
		}
		fmt.Fprintf(&css, "@media (prefers-color-scheme: %s) {\n%s}\n", scheme.preference, styles)
	}
	return writeFile(filepath.Join(work, "static", "chroma.css"), []byte(css.String()))
}

// command runs a program that says what it has to say to this one's user.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// serve serves the site until it is interrupted.
func serve(ctx context.Context, out io.Writer, address string, handler http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(out, "serving at http://%s, until Ctrl-C\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
