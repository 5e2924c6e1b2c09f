package openclaw

import (
	"fmt"
	"strings"

	"perch/health"
)

// Condition returns where the door is, and how many programs are connected.
func (s *Server) Condition(addresses []string) health.Part {
	return health.Part{Name: "openclaw", OK: true}.Saying(
		fmt.Sprintf("serves %s; %d programs are connected", strings.Join(addresses, ", "), s.Connected()))
}
