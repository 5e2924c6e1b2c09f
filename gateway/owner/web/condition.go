package web

import (
	"fmt"

	"perch/health"
)

// Condition returns whether the page is there, and where. ingressErr is why the address for
// Home Assistant's ingress is not open; nil is that it is, or is not wanted.
func (d *Server) Condition(ingressErr error) health.Part {
	switch {
	case ingressErr != nil:
		return health.Part{Name: "page", Note: fmt.Sprintf("Home Assistant cannot show it: %v", ingressErr)}
	case !d.Bundled():
		return health.Part{Name: "page", OK: true, Note: "this program was built without its page; make build bundles it"}
	}
	return health.Part{Name: "page", OK: true, Note: fmt.Sprintf("is at %s/", d.o.Own())}
}
