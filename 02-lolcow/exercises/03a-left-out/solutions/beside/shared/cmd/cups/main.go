// Command cups counts cups.
package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

func main() {
	pots := pflag.Int("pots", 1, "how many pots there are")
	pflag.Parse()
	fmt.Println(4 * *pots)
}
