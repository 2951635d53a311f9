package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/image"
)

// checkImages looks for the programs that images of the stages hold and that are not the stages' own.
func checkImages(ctx context.Context) finding {
	const name = "images"
	stages, err := config.Stages()
	if err != nil {
		return finding{name, false, err.Error(), "unknown"}
	}
	var pulls, missing []string
	for _, dir := range stages {
		stage := filepath.Base(dir)
		images, err := image.ToPull(ctx, dir)
		if err != nil {
			return finding{name, false, err.Error(), "unknown"}
		}
		for _, i := range images {
			if host, err := i.Answers(ctx); err != nil {
				missing = append(missing, fmt.Sprintf("%s has no %s on kind: %v, and %s does not answer: %s", stage, i.Ref, i.Why, host, i.Install))
			} else {
				pulls = append(pulls, fmt.Sprintf("%s pulls %s from %s", stage, i.Ref, host))
			}
		}
	}
	switch {
	case len(missing) > 0:
		return finding{name, false, "", strings.Join(missing, "; ")}
	case len(pulls) > 0:
		return finding{name, true, strings.Join(pulls, "; "), ""}
	}
	return finding{name, true, "the programs of every image are the stages' own, or this machine's", ""}
}
