package hooks

import (
	"mime"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes adds the routes of the hooks to a router. The router must require the skins' key, or be
// reachable only from this machine.
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
		response, err := a.permit(c.Request.Context(), c.Query("agent"), body)
		switch {
		case err != nil:
			return err
		case c.Request.Context().Err() != nil: // the client has disconnected
		case response == nil:
			c.Status(http.StatusNoContent)
		default:
			c.JSON(http.StatusOK, response)
		}
		return nil
	}))
}

// post returns a handler that passes the JSON body of a request to handle.
func post(handle func(c *gin.Context, body []byte) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header("x-clawd-server", app)
		body, err := read(c.Request)
		if err == nil {
			err = handle(c, body)
		}
		if err != nil {
			_ = c.Error(err)
		}
	}
}

// app is the program name that the hooks of clawd-on-desk expect.
const app = "clawd-on-desk"

// hello is the response to GET /state, which identifies the program to hooks.
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

// read returns the body of a request. It requires the content type JSON, which a web page of another origin cannot
// send without a preflight request.
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

// errKind is the error for a request without exactly one Content-Type of application/json.
var errKind error = &httpserver.Fault{Word: "bad_content_type", Sentence: "the body must be JSON, with the header Content-Type: application/json",
	HTTP: http.StatusUnsupportedMediaType}
