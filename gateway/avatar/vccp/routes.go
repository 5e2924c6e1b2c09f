package vccp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts what a model comes to. It is for a router behind the skins' key,
// or for one that only this machine reaches.
func (s *Server) Routes(r gin.IRouter) {
	r.POST("/mcp", httpserver.Limit(limit.List), func(c *gin.Context) {
		if err := s.post(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
	r.GET("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
	r.DELETE("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
}

// Routes mounts what coding agents come to that Perch has started. Its lock is
// the bearer of a talk.
func (t *Talks) Routes(r gin.IRouter) {
	serve := func(c *gin.Context) {
		if err := t.serve(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	}
	r.POST("/mcp/talk", httpserver.Limit(limit.List), serve)
	r.GET("/mcp/talk", serve)
	r.DELETE("/mcp/talk", serve)
}

// Characters mounts what a character comes to. Its address holds a session's id,
// which only the model has that was given it; the lock may still be the same.
func (s *Server) Characters(r gin.IRouter) {
	attend := func(c *gin.Context) { s.attend(c.Writer, c.Request, c.Param("session")) }
	r.GET("/vccp/:session", attend)
	r.GET("/vccp/", attend)
	r.GET("/vccp", attend)
}

// sessionHeader names a session in a request.
const sessionHeader = "Mcp-Session-Id"

// noSession is the answer to a request that belongs to no session and begins
// none, in the words of the protocol's own server.
const noSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`

// post serves a request, or begins a session.
func (s *Server) post(w http.ResponseWriter, r *http.Request) error {
	if session := r.Header.Get(sessionHeader); session != "" {
		defer s.use(session)()
		s.serve(w, r)
		return nil
	}
	body, err := httpserver.Body(r)
	if err != nil {
		return err
	}
	var request struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(body, &request) != nil || request.Method != "initialize" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, noSession) // a client that does not read it has left
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !s.makeRoom() {
		return &httpserver.Fault{Word: "too_many_sessions", HTTP: http.StatusServiceUnavailable,
			Sentence: "too many models are connected; end one of their sessions"}
	}
	s.updateTools()
	s.serve(w, r)
	s.begun(w.Header().Get(sessionHeader))
	return nil
}

// serve has the library answer a client, which has to read in time.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Expose-Headers", sessionHeader)
	t := timed{w, http.NewResponseController(w)}
	defer t.lift()
	s.http.ServeHTTP(t, r)
}

// readWithin is how long a client may take to read before it is disconnected.
const readWithin = 10 * time.Second

// timed gives every write its time.
type timed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (t timed) Write(text []byte) (int, error) {
	// Not every ResponseWriter has deadlines; a server's has.
	_ = t.control.SetWriteDeadline(time.Now().Add(readWithin))
	return t.ResponseWriter.Write(text)
}

// Flush implements http.Flusher.
func (t timed) Flush() { _ = t.control.Flush() }

// Unwrap is for http.ResponseController.
func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// lift leaves no deadline behind for the next answer on this connection.
func (t timed) lift() { _ = t.control.SetWriteDeadline(time.Time{}) }
