package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// units of a duration. A number without a unit is in seconds.
var units = []struct {
	suffix string
	length time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"", time.Second},
}

// Duration parses a number with one unit: 5s, 1.5m, 100ms, 3. Unlike in Go, 1m30s is invalid.
func Duration(s string) (time.Duration, error) {
	for _, unit := range units {
		number, found := strings.CutSuffix(s, unit.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n*float64(unit.length) < math.MaxInt64) {
			break
		}
		return time.Duration(n * float64(unit.length)), nil
	}
	return 0, errors.New("not a number with a unit, such as 5s")
}
