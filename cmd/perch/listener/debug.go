package listener

import (
	"expvar"
	"net/http/pprof"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
)

// DebugRoutes mounts Go's profiles and counters for programs on this machine. Packages expvar
// and pprof also register with http.DefaultServeMux, which no listener serves.
func DebugRoutes(e *gin.Engine) {
	local := e.Group("/debug", httpserver.Guard(httpserver.Local))
	local.GET("/vars", gin.WrapH(expvar.Handler()))
	local.GET("/pprof/*profile", func(c *gin.Context) {
		serve := pprof.Index // Index lists the profiles and serves them, except the following
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
}
