package hooks

import (
	"mime"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts what coding agents' hooks use. It is for a router behind the
// skins' key, or for one that only this machine reaches.
func (d *API) Routes(r gin.IRouter) {
	r.GET("/state", func(c *gin.Context) {
		c.Header("x-clawd-server", app)
		c.JSON(http.StatusOK, hello{OK: true, App: app, Port: port(c.Request)})
	})
	r.POST("/state", httpserver.Limit(limit.Message), post(func(c *gin.Context, body []byte) error {
		empty, err := d.report(c.Query("agent"), body)
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
		a, err := d.permit(c.Request.Context(), c.Query("agent"), body)
		switch {
		case err != nil:
			return err
		case c.Request.Context().Err() != nil: // the client has gone
		case a == nil:
			c.Status(http.StatusNoContent)
		default:
			c.JSON(http.StatusOK, a)
		}
		return nil
	}))
}

// post is a handler of a body of JSON.
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

// app is whom hooks look for.
const app = "clawd-on-desk"

// hello is how they know that they have found it.
type hello struct {
	OK   bool   `json:"ok"`
	App  string `json:"app"`
	Port int    `json:"port"`
}

// port is the one this request came to.
func port(r *http.Request) int {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return at.Port
	}
	return 0
}

// read is a body of JSON. A page that a browser shows can send none without
// asking first, so a body declared as JSON is no such page's.
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

// errKind is the answer to a body that is not declared as JSON.
var errKind error = &httpserver.Fault{Word: "bad_content_type", Sentence: "the body has to be JSON, and say so: Content-Type: application/json",
	HTTP: http.StatusUnsupportedMediaType}
