package web

import (
	"fmt"

	"perch/health"
)

// Condition returns the page's entry in the health report. ingressErr is the error of the listener for Home
// Assistant's ingress; it may be nil.
func (s *Server) Condition(ingressErr error) health.Part {
	switch {
	case ingressErr != nil:
		return health.Part{Name: "page", Note: fmt.Sprintf("Home Assistant cannot show it: %v", ingressErr)}
	case !s.Bundled():
		return health.Part{Name: "page", OK: true, Note: "this program was built without its page; make build bundles it"}
	}
	return health.Part{Name: "page", OK: true, Note: fmt.Sprintf("is at %s/", s.o.LocalURL())}
}
