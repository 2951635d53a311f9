package lesson

// Run is Main without the end of the process.
var Run = run
