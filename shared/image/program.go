package image

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program puts a program for an image of Linux into STAGE/bin/linux-ARCH and returns its path: built from the stage
// if it is one of the stage's, else the one of this machine. The error is errNoProgram if there is none.
func program(ctx context.Context, stageDir, name, arch string) (string, error) {
	if _, err := os.Stat(filepath.Join(stageDir, packageOf(name))); err == nil {
		return Binary(ctx, stageDir, name, "linux", arch)
	}
	content, err := ofMachine(name, arch)
	if err != nil {
		return "", err
	}
	path := filepath.Join(stageDir, "bin", "linux-"+arch, name)
	return path, install(content, path)
}

// ofMachine reads a program of this machine. The error is errNoProgram if an image cannot use it.
func ofMachine(name, arch string) ([]byte, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w: this machine has no %s", errNoProgram, name)
	}
	content, err := os.ReadFile(found)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", found, err)
	}
	if err := checkStatic(content, arch); err != nil {
		return nil, fmt.Errorf("%w: %s of this machine %w", errNoProgram, found, err)
	}
	return content, nil
}

// install puts a program of this machine where a Dockerfile finds it.
func install(content []byte, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("copying a program of this machine: %w", err)
	}
	if err := os.WriteFile(path, content, programMode); err != nil {
		return fmt.Errorf("copying a program of this machine: %w", err)
	}
	return setMode(path)
}

// programMode lets any user run a program: in an image that is not the one who built it.
const programMode = 0o755

// setMode gives a program its mode in spite of the umask.
func setMode(path string) error {
	if err := os.Chmod(path, programMode); err != nil {
		return fmt.Errorf("making %s a program for all users: %w", path, err)
	}
	return nil
}

// errNoProgram says that an image cannot be made here for want of a program that is not the stage's own.
var errNoProgram = errors.New("there is no program for the image")

// machines are the architectures of Linux by Go's names for them.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm": elf.EM_ARM, "arm64": elf.EM_AARCH64, "loong64": elf.EM_LOONGARCH,
	"ppc64le": elf.EM_PPC64, "riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

// checkStatic tells what keeps a program from running in an image that holds nothing else.
func checkStatic(content []byte, arch string) error {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return errors.New("is not for Linux")
	}
	if file.Machine != machines[arch] {
		return fmt.Errorf("is for %s, and the engine's images are for %s", file.Machine, arch)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("is not static")
		}
	}
	return nil
}
