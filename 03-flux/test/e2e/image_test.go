package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// brokerImage is the image of the brokers, from the first spec on.
var brokerImage string

var _ = BeforeEach(func() {
	var err error
	brokerImage, err = chooseImage()
	Expect(err).NotTo(HaveOccurred())
})

// chooseImage takes the image that FLUX_IMAGE names, or else makes that of the stand-in.
var chooseImage = sync.OnceValues(func() (string, error) {
	ctx := context.Background() // no spec's: it is for all of them
	if name := os.Getenv("FLUX_IMAGE"); name != "" {
		fmt.Println("==> the brokers are those of FLUX_IMAGE:", name)
		return env.LoadImage(ctx, name)
	}
	fmt.Println("==> the brokers are those of the stand-in, which is no Flux")
	return env.BuildImage(ctx, "../standin", "flux")
})
