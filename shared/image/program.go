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
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: this machine has no %s", errNoProgram, name)
	}
	content, err := os.ReadFile(found)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", found, err)
	}
	if err := checkStatic(content, arch); err != nil {
		return "", fmt.Errorf("%w: %s of this machine %w", errNoProgram, found, err)
	}
	path := filepath.Join(stageDir, "bin", "linux-"+arch, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("copying %s: %w", found, err)
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		return "", fmt.Errorf("copying %s: %w", found, err)
	}
	return path, nil
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
