package cow

import (
	_ "embed"
	"strings"
)

//go:embed fortunes.txt
var fortuneFile string

// fortunes has one sentence per line of fortunes.txt.
var fortunes = strings.Split(strings.TrimSpace(fortuneFile), "\n")

// Fortune returns one of the embedded sentences. pick gets their number n and
// returns which to take, from 0 to n-1: rand.IntN, or a test's own choice.
func Fortune(pick func(n int) int) string {
	return fortunes[pick(len(fortunes))]
}
