// Package plugin is `kubectl goop`: a distributed command line. It creates Goops, follows them until they are over,
// and shows what their workers write.
//
// One goroutine, in session.go, knows what is going on: it hears of the Goop and of its pods, and decides whose log
// is read next. At most 32 others read a log each and hand it to a sink: lines, groups or JSON. So memory does not
// grow with what workers write, and with their number only by a few words each.
package plugin
