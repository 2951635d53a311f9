package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"example.com/workbook/shared/deploy"
	"example.com/workbook/shared/engine"
)

// Pulled is an image of a stage that cannot be made on this machine, and that the engine does not have: it will be pulled.
type Pulled struct {
	Ref string
	// Why says which program is missing, Install how to have it.
	Why     error
	Install string
}

// ToPull returns the images that a stage would pull.
func ToPull(ctx context.Context, stageDir string) ([]Pulled, error) {
	targets, err := Targets(stageDir)
	if err != nil {
		return nil, err
	}
	refs, err := deploy.ImageRefs(stageDir)
	if err != nil {
		return nil, err
	}
	arch := runtime.GOARCH
	found, err := engine.Find(ctx)
	if err == nil {
		arch, err = architecture(ctx, found)
	}
	if err != nil && !errors.Is(err, engine.ErrNone) && !errors.Is(err, engine.ErrDenied) {
		return nil, err
	}
	var out []Pulled
	for name, target := range targets {
		why, err := lacking(stageDir, target, arch)
		if err != nil {
			return nil, err
		}
		if why == nil {
			continue
		}
		if found != nil {
			if _, err := imageID(ctx, found, refs[name]); err == nil {
				continue
			}
		}
		out = append(out, Pulled{refs[name], why, fmt.Sprintf("have a static %s in PATH%s", target, packaged[target])})
	}
	return out, nil
}

// reachable is how long a registry may take to say anything.
const reachable = 3 * time.Second

// Answers asks the image's registry whether it is there. Any response will do: most want a login first.
func (p Pulled) Answers(ctx context.Context) (host string, err error) {
	host, _, found := strings.Cut(p.Ref, "/")
	if !found || !strings.ContainsAny(host, ".:") {
		host = "registry-1.docker.io" // the engine's default
	}
	scheme := "https"
	if isLoopback(p.Ref) {
		scheme = "http"
	}
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/v2/", http.NoBody)
	if err != nil {
		return host, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return host, err
	}
	return host, response.Body.Close()
}

// lacking says which of a target's programs is neither the stage's nor this machine's, and nil if none is.
func lacking(stageDir, name, arch string) (why, err error) {
	target, _, err := findTarget(stageDir, name)
	if err != nil {
		return nil, err
	}
	for _, program := range target.programs {
		if _, err := os.Stat(filepath.Join(stageDir, packageOf(program))); err == nil {
			continue
		}
		if _, err := ofMachine(program, arch); errors.Is(err, errNoProgram) {
			return err, nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
