package lesson

// PrintRequests prints what clients requested.
func (e *Env) PrintRequests(requests []Request) {
	if len(requests) == 0 {
		e.Printf("   request: none\n")
	}
	for _, request := range requests {
		e.Printf("   request: %s\n", request)
	}
}
