package web

// TypedCodes returns how many links have digits to type.
func (s *Server) TypedCodes() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l.typed != "" {
			n++
		}
	}
	return n
}
