// Command kettle makes tea.
package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"example.com/pots/kettle/brew"
)

func main() {
	cups := pflag.Int("cups", 1, "how many cups of tea to make")
	pflag.Parse()
	fmt.Println(brew.Tea(*cups))
}
