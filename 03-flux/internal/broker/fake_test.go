package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of the entrypoint put links to this test binary into PATH. The binary simulates the programs of an image,
// and records how each was called in a file of the directory RECORD.
func TestMain(m *testing.M) {
	programs := map[string]func([]string) int{"flux": fakeFlux, "install": fakeInstall, "command": fakeCommand}
	if program, isFake := programs[filepath.Base(os.Args[0])]; isFake {
		os.Exit(program(os.Args))
	}
	// A shell cannot trap a signal that was ignored when it started, which happens under nohup. A signal that this
	// process catches has its default action in the processes that it starts.
	for stop := range stopSignals {
		if signal.Ignored(stop) {
			signal.Notify(make(chan os.Signal, 1), stop)
		}
	}
	os.Exit(m.Run())
}

// record writes a file of the directory RECORD, atomically.
func record(file string, value any) {
	file = filepath.Join(os.Getenv("RECORD"), file)
	content, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(file+".new", content, 0o644)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		panic(err)
	}
}

// fakeFlux simulates flux. `flux broker` runs what its command line asks for, or does what BROKER says.
func fakeFlux(args []string) int {
	switch args[1] {
	case "broker":
		record("broker", args)
		record("environment", os.Environ())
		return fakeBroker(args[2:])
	case "run":
		record("run", args)
		return run(args[slices.Index(args, "--")+1:])
	case "rc1":
		record("rc1", exists(os.Getenv("READY")))
		return 0
	}
	if rc1 := os.Getenv("RC1"); rc1 != "" && slices.Equal(args[1:], []string{"config", "builtin", "rc1_path"}) {
		fmt.Println(rc1)
		return 0
	}
	fmt.Fprintf(os.Stderr, "flux: %q is unknown\n", args[1:])
	return 1
}

func fakeBroker(args []string) int {
	record("pid", os.Getpid())
	what, number, _ := strings.Cut(os.Getenv("BROKER"), " ")
	switch what {
	case "exit":
		code, _ := strconv.Atoi(number)
		return code
	case "signal":
		// Go programs handle SEGV themselves, so another program has to die of it.
		err := syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -s " + number + " $$"}, os.Environ())
		panic(err)
	case "start":
		signal.Ignore(syscall.SIGTERM)
		record("started", true)
		<-time.After(2 * timeout)
	}
	signals := make(chan os.Signal, 8)
	if what == "serve" {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	}
	code := 0
	for i, arg := range args {
		if rc1, isRC1 := strings.CutPrefix(arg, "-Sbroker.rc1_path="); isRC1 {
			code = run([]string{"/bin/sh", "-c", rc1})
		}
		if !strings.HasPrefix(arg, "-") {
			code = run(args[i:])
			break
		}
	}
	if what == "serve" {
		first := <-signals
		record("signal", first.String())
		<-time.After(100 * time.Millisecond) // so that a shell that does not wait ends first
		record("ended", true)
	}
	return code
}

// fakeInstall simulates install. If INSTALL is wait, it waits until the test lets it continue.
func fakeInstall(args []string) int {
	if os.Getenv("INSTALL") == "wait" {
		record("installing", args)
		for !exists(filepath.Join(os.Getenv("RECORD"), "go on")) {
			<-time.After(time.Millisecond)
		}
	}
	return run(append([]string{os.Getenv("REAL_INSTALL")}, args[1:]...))
}

// fakeCommand simulates the user's command.
func fakeCommand(args []string) int {
	record("command", args)
	record("ready", exists(os.Getenv("READY")))
	fmt.Println("the output of the command")
	return 0
}

// run runs a program of PATH as the calling program does, and returns its exit code in the way of a shell.
func run(args []string) int {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // the test ends it by its process group
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	return 0
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
