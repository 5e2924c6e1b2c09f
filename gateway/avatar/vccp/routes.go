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

// Routes mounts the MCP endpoint for models. The caller must check the skins' key, or mount the
// endpoint on loopback only.
func (s *Server) Routes(r gin.IRouter) {
	r.POST("/mcp", httpserver.Limit(limit.List), func(c *gin.Context) {
		if err := s.post(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
	r.GET("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
	r.DELETE("/mcp", func(c *gin.Context) { s.serve(c.Writer, c.Request) })
}

// Routes mounts the endpoints of all sessions at one address. The bearer token of a request
// selects the endpoint.
func (e *ToolEndpoints) Routes(r gin.IRouter) {
	serve := func(c *gin.Context) {
		if err := e.serve(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	}
	r.POST("/mcp/talk", httpserver.Limit(limit.List), serve)
	r.GET("/mcp/talk", serve)
	r.DELETE("/mcp/talk", serve)
}

// CharacterRoutes mounts the WebSocket for characters. The last part of the path is the ID of a
// session, which only the session's model knows.
func (s *Server) CharacterRoutes(r gin.IRouter) {
	for _, path := range []string{"/vccp/:session", "/vccp/", "/vccp"} {
		r.GET(path, func(c *gin.Context) { s.serveCharacter(c.Writer, c.Request, c.Param("session")) })
	}
}

// sessionHeader is the header that contains the ID of a session.
const sessionHeader = "Mcp-Session-Id"

// noSession is the response to a request that has no session ID and does not begin a session. VCCP's
// reference server sends the same response.
const noSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`

// post serves a POST request. An initialize request begins a session.
func (s *Server) post(w http.ResponseWriter, r *http.Request) error {
	if session := r.Header.Get(sessionHeader); session != "" {
		defer s.beginRequest(session)()
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
		_, _ = io.WriteString(w, noSession) // fails only if the client has disconnected
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

// serve passes a request to the MCP library.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Expose-Headers", sessionHeader)
	serveTimed(s.http, w, r)
}

// serveTimed passes a request to h. Each write of the response must take at most writeTimeout.
func serveTimed(h http.Handler, w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may have another response
	h.ServeHTTP(timedWriter{w, control}, r)
}

// writeTimeout is the maximum time for a write to a client.
const writeTimeout = 10 * time.Second

// timedWriter sets a deadline for every write.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements http.ResponseWriter.
func (t timedWriter) Write(text []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only in tests
	return t.ResponseWriter.Write(text)
}

// Flush implements http.Flusher.
func (t timedWriter) Flush() { _ = t.control.Flush() }

// Unwrap allows http.ResponseController to find the original writer.
func (t timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
