package e2e

import (
	"context"
	"fmt"
	"os"

	"example.com/workbook/shared/e2e"
)

// chooseImage uses the image of the brokers that FLUX_IMAGE names, or else builds that of the stand-in.
func chooseImage(ctx context.Context, env *e2e.Env) (string, error) {
	if name := os.Getenv("FLUX_IMAGE"); name != "" {
		fmt.Println("==> the brokers are those of FLUX_IMAGE:", name)
		return env.LoadImage(ctx, name)
	}
	fmt.Println("==> the brokers are those of the stand-in, which is no Flux")
	return env.BuildImage(ctx, "../standin", "flux")
}
