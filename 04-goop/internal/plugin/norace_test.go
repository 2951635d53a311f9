//go:build !race

package plugin

const memoryFactor = 1
