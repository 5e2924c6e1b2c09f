package hooks

import (
	"mime"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts the routes of the hooks, on a router that requires the skins' key or that only
// this machine reaches.
func (a *API) Routes(r gin.IRouter) {
	r.GET("/state", func(c *gin.Context) {
		c.Header("x-clawd-server", app)
		c.JSON(http.StatusOK, hello{OK: true, App: app, Port: port(c.Request)})
	})
	r.POST("/state", httpserver.Limit(limit.Message), post(func(c *gin.Context, body []byte) error {
		empty, err := a.report(c.Query("agent"), body)
		switch {
		case err != nil:
			return err
		case empty:
			c.Status(http.StatusNoContent)
		default:
			c.String(http.StatusOK, "ok")
		}
		return nil
	}))
	r.POST("/permission", httpserver.Limit(limit.Message), post(func(c *gin.Context, body []byte) error {
		answer, err := a.permit(c.Request.Context(), c.Query("agent"), body)
		switch {
		case err != nil:
			return err
		case c.Request.Context().Err() != nil: // the client has gone
		case answer == nil:
			c.Status(http.StatusNoContent)
		default:
			c.JSON(http.StatusOK, answer)
		}
		return nil
	}))
}

// post returns a handler of a JSON body.
func post(work func(c *gin.Context, body []byte) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header("x-clawd-server", app)
		body, err := read(c.Request)
		if err == nil {
			err = work(c, body)
		}
		if err != nil {
			_ = c.Error(err)
		}
	}
}

// app is the name of the program that hooks look for.
const app = "clawd-on-desk"

// hello is the response of GET /state, which hooks use to find the program.
type hello struct {
	OK   bool   `json:"ok"`
	App  string `json:"app"`
	Port int    `json:"port"`
}

// port returns the local port of a request's connection.
func port(r *http.Request) int {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return at.Port
	}
	return 0
}

// read returns the body of a request with the content type JSON. A web page cannot send such a request without
// a preflight.
func read(r *http.Request) ([]byte, error) {
	kinds := r.Header.Values("Content-Type")
	if len(kinds) != 1 {
		return nil, errKind
	}
	if kind, _, err := mime.ParseMediaType(kinds[0]); err != nil || kind != "application/json" {
		return nil, errKind
	}
	return httpserver.Body(r)
}

// errKind refuses a body with another content type than JSON.
var errKind error = &httpserver.Fault{Word: "bad_content_type", Sentence: "the body has to be JSON, and say so: Content-Type: application/json",
	HTTP: http.StatusUnsupportedMediaType}
