// Package worker runs the command of a Goop in a pod, retries it if it fails, and leaves a record of how it ended. The
// program is copied into every pod, so it uses only the standard library.
package worker
