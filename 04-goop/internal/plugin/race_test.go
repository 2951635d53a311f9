//go:build race

package plugin

// The race detector takes several times the memory.
const memoryFactor = 8
