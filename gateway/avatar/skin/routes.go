package skin

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"perch/agent/notice"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
)

// schema describes the frames and commands (JSON Schema, draft 2020-12).
//
//go:embed schema/vtuber.v1.json
var schema []byte

// Routes mounts the API. Each lock checks the key in a request's Authorization header. On an address
// for programs on this machine only, no lock is needed. A browser cannot set that header in a
// WebSocket request, so the locks also get a key that is in a subprotocol or, if Options.QueryToken is
// set, in the query.
func (s *Server) Routes(r gin.IRouter, locks ...func(*http.Request) error) {
	checks := make([]func(*http.Request) error, len(locks))
	for i, lock := range locks {
		checks[i] = httpserver.InUpgrade(s.o.QueryToken, lock)
	}
	guard := httpserver.Guard(checks...)
	s.vtuberRoutes(r.Group("/v1/vtuber", guard))
	// sendOpenAIError comes first, so that it also sends the errors of guard.
	s.chatRoutes(r.Group("/v1", s.sendOpenAIError, guard, httpserver.Limit(limit.File)))
}

// vtuberRoutes mounts the WebSocket, its schema, and the notifications.
func (s *Server) vtuberRoutes(r gin.IRouter) {
	r.GET("/ws", func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
	r.GET("/schema", func(c *gin.Context) { c.Data(http.StatusOK, "application/schema+json", schema) })
	r.POST("/notifications", httpserver.Limit(limit.Body), func(c *gin.Context) {
		body, err := io.ReadAll(c.Request.Body)
		var id string
		if err == nil {
			id, err = s.notify(body)
		}
		if err != nil {
			_ = c.Error(fault(err))
			return
		}
		c.JSON(http.StatusAccepted, gin.H{"id": id})
	})
}

// chatRoutes mounts OpenAI's API.
func (s *Server) chatRoutes(r gin.IRouter) {
	r.GET("/models", func(c *gin.Context) { c.JSON(http.StatusOK, s.models()) })
	r.GET("/models/*id", func(c *gin.Context) { // a model's name may contain a slash
		m, err := s.findModel(strings.TrimPrefix(c.Param("id"), "/"))
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.JSON(http.StatusOK, m)
	})
	r.POST("/responses", func(c *gin.Context) {
		_, err := io.Copy(io.Discard, c.Request.Body)
		_ = c.Error(cmp.Or(err, errResponses))
	})
	r.POST("/chat/completions", func(c *gin.Context) {
		body, err := io.ReadAll(c.Request.Body)
		var q question
		if err == nil {
			q, err = s.parse(body, c.GetHeader(sessionHeader))
		}
		if err == nil {
			c.Header(sessionHeader, q.conversation.session)
			q.tools = wantsProgress(c.GetHeader(progressHeader))
			if q.stream {
				err = s.stream(c.Request.Context(), c.Writer, q)
			} else {
				var reply completion
				if reply, err = s.complete(c.Request.Context(), q); err == nil {
					c.JSON(http.StatusOK, reply)
				}
			}
		}
		// An error does not matter if the client has disconnected.
		if err != nil && c.Request.Context().Err() == nil {
			_ = c.Error(err)
		}
	})
}

// sessionHeader is the header of requests and responses that identifies the conversation.
const sessionHeader = "X-Session-Id"

// sendOpenAIError calls the next handlers, and sends their last error in OpenAI's format.
func (s *Server) sendOpenAIError(c *gin.Context) {
	c.Header("Access-Control-Expose-Headers", sessionHeader+", Retry-After") // otherwise web pages cannot read these headers
	c.Next()
	if len(c.Errors) == 0 || c.Writer.Written() {
		return
	}
	err := c.Errors.Last().Err
	c.Errors = nil // this function sends the error
	status, shown := openAIError(err)
	if status == http.StatusInternalServerError {
		s.o.Log.Error("a request failed", "path", c.Request.URL.Path, "err", err)
	}
	if wait := retryAfter(status, err); wait > 0 {
		c.Header("Retry-After", strconv.Itoa(wait))
	}
	httpserver.Challenge(c.Writer.Header(), status)
	c.JSON(status, shown)
}

// notify stores a notification from its JSON, and returns the notification's ID.
func (s *Server) notify(body []byte) (id string, err error) {
	n, err := notice.Parse(body, s.o.Find)
	if err == nil && n.Robot != "" {
		_, err = s.o.Robots.Get(n.Robot) // a notification for an unknown robot would never be spoken
		if err == nil && !s.o.Robots.Trusts(n.Robot) {
			err = fmt.Errorf("%w: the robot is not adopted by name; perch robot adopt %s adopts it", device.ErrUnknownRobot, n.Robot)
		}
	}
	if err == nil {
		n, err = s.o.Notifier.Notify(n)
	}
	return n.ID, err
}

// fault converts errors of other packages to faults with an HTTP status.
func fault(err error) error {
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
		{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
		{Err: notice.ErrInvalid, Word: "bad_body", HTTP: http.StatusBadRequest},
	})
}
