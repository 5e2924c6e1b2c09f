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

// Routes mounts the MCP endpoint for models, behind the skins' key or on loopback.
func (s *Server) Routes(r gin.IRouter) {
	r.POST("/mcp", httpserver.Limit(limit.List), func(c *gin.Context) {
		if err := s.post(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
	r.GET("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
	r.DELETE("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
}

// Routes mounts the MCP endpoint for coding agents that Perch has started. Its key is the bearer
// of a talk.
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

// Characters mounts the WebSocket for characters. Its address contains a session's id, which only
// the session's model knows.
func (s *Server) Characters(r gin.IRouter) {
	for _, path := range []string{"/vccp/:session", "/vccp/", "/vccp"} {
		r.GET(path, func(c *gin.Context) { s.serveCharacter(c.Writer, c.Request, c.Param("session")) })
	}
}

// sessionHeader contains the id of a session.
const sessionHeader = "Mcp-Session-Id"

// noSession answers a request without a session that begins none, in the words of the
// reference server.
const noSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`

// post answers a request, and begins a session if it is an initialize request.
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
		_, _ = io.WriteString(w, noSession) // the client may have left
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !s.makeRoom() {
		return &httpserver.Fault{Word: "too_many_sessions", HTTP: http.StatusServiceUnavailable,
			Sentence: "too many models are connected; end one of their sessions"}
	}
	s.updateTools()
	s.serve(w, r)
	s.recordOpened(w.Header().Get(sessionHeader))
	return nil
}

// serve lets the MCP library answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Expose-Headers", sessionHeader)
	t := timed{w, http.NewResponseController(w)}
	defer t.lift()
	s.http.ServeHTTP(t, r)
}

// readWithin is the most that a write to a client may take.
const readWithin = 10 * time.Second

// timed sets a deadline for every write.
type timed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (t timed) Write(text []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(readWithin)) // fails only in tests
	return t.ResponseWriter.Write(text)
}

// Flush implements http.Flusher.
func (t timed) Flush() { _ = t.control.Flush() }

// Unwrap is for http.ResponseController.
func (t timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// lift removes the deadline for the next answer on the connection.
func (t timed) lift() { _ = t.control.SetWriteDeadline(time.Time{}) }
