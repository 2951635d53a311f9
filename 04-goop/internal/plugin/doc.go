// Package plugin implements `kubectl goop`, a distributed command line. It creates Goops, follows them until they end,
// and shows the output of their workers.
//
// One goroutine, in session.go, has all state: it receives the events of the Goop and of its pods, and decides which log
// is read next. At most 32 other goroutines read one log each and write it to a sink: lines, groups or JSON. So memory
// use does not depend on the size of the output, and depends only little on the number of workers.
package plugin
