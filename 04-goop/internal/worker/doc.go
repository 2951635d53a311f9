// Package worker is what runs in the pods of a Goop: a command, tried again if it fails, with a record of how it
// ended. It is copied into every pod, so it uses nothing but the standard library.
package worker
