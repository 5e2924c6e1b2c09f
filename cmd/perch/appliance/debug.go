package appliance

import (
	"expvar"
	"net/http/pprof"

	"github.com/gin-gonic/gin"

	"perch/gateway/door"
)

// listenDebug serves Go's profiles and counters to programs of this machine, where
// debug.listen has an address. Both packages mount themselves on http.DefaultServeMux
// too, which no listener serves.
func (a *Appliance) listenDebug(d *doors) error {
	at := a.Config().Debug.Listen
	if at == "" {
		return nil
	}
	return d.listen("debug.listen", []string{at}, func(e *gin.Engine) {
		local := e.Group("/debug", door.Guard(door.Local))
		local.GET("/vars", gin.WrapH(expvar.Handler()))
		local.GET("/pprof/*profile", func(c *gin.Context) {
			serve := pprof.Index // and of the profiles that it lists, except these
			switch c.Param("profile") {
			case "/cmdline":
				serve = pprof.Cmdline
			case "/profile":
				serve = pprof.Profile
			case "/symbol":
				serve = pprof.Symbol
			case "/trace":
				serve = pprof.Trace
			}
			serve(c.Writer, c.Request)
		})
	})
}
