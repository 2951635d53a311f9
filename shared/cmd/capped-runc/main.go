// Command capped-runc is runc for a host that lacks capabilities: it takes them out of the container's
// specification and becomes runc. scripts/engine.sh makes it Docker's runtime where it is needed.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/moby/sys/capability"

	"example.com/workbook/shared/engine/capped"
)

func main() {
	granted, err := bounding()
	if err != nil {
		fail(err)
	}
	args := os.Args[1:]
	if file, path := capped.File(args); file != "" {
		if err := capped.LimitFile(file, path, func(name string) bool { return granted[name] }); err != nil {
			fail(err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ()))
}

// bounding returns the capabilities that processes of this host can have, by the names container
// specifications use.
func bounding() (map[string]bool, error) {
	self, err := capability.NewPid2(0)
	if err != nil {
		return nil, fmt.Errorf("reading capabilities: %w", err)
	}
	if err := self.Load(); err != nil {
		return nil, fmt.Errorf("reading capabilities: %w", err)
	}
	known, err := capability.ListSupported()
	if err != nil {
		return nil, fmt.Errorf("listing capabilities: %w", err)
	}
	granted := map[string]bool{}
	for _, c := range known {
		if self.Get(capability.BOUNDING, c) {
			granted["CAP_"+strings.ToUpper(c.String())] = true
		}
	}
	return granted, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "capped-runc:", err)
	os.Exit(1)
}
