package lesson

// Run is Main, but returns the exit code.
var Run = run
