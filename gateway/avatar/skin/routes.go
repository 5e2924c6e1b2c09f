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

// Routes mounts the API behind locks, or behind none for programs on this machine. A key that a
// browser had to put elsewhere is passed to the locks in the header.
func (s *Server) Routes(r gin.IRouter, locks ...func(*http.Request) error) {
	ours := make([]func(*http.Request) error, len(locks))
	for i, lock := range locks {
		ours[i] = httpserver.InUpgrade(s.o.QueryToken, lock)
	}
	guard := httpserver.Guard(ours...)
	s.vtuberRoutes(r.Group("/v1/vtuber", guard))
	// Errors are rendered in OpenAI's shape, also those of the key checks.
	s.chatRoutes(r.Group("/v1", s.asOpenAI, guard, httpserver.Limit(limit.File)))
}

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

func (s *Server) chatRoutes(r gin.IRouter) {
	r.GET("/models", func(c *gin.Context) { c.JSON(http.StatusOK, s.models()) })
	r.GET("/models/*id", func(c *gin.Context) { // a model's name may contain a slash
		m, err := s.oneModel(strings.TrimPrefix(c.Param("id"), "/"))
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
			c.Header(sessionHeader, q.talk.session)
			q.tools = asksForProgress(c.GetHeader(progressHeader))
			if q.stream {
				err = s.answerStream(c.Request.Context(), c.Writer, q)
			} else {
				var whole completion
				if whole, err = s.answerWhole(c.Request.Context(), q); err == nil {
					c.JSON(http.StatusOK, whole)
				}
			}
		}
		// After the client has gone, an error is no failure.
		if err != nil && c.Request.Context().Err() == nil {
			_ = c.Error(err)
		}
	})
}

// sessionHeader names the talk, in requests and answers.
const sessionHeader = "X-Session-Id"

// asOpenAI renders the last error of the handlers after it in OpenAI's shape.
func (s *Server) asOpenAI(c *gin.Context) {
	c.Header("Access-Control-Expose-Headers", sessionHeader+", Retry-After") // pages see no other headers
	c.Next()
	if len(c.Errors) == 0 || c.Writer.Written() {
		return
	}
	err := c.Errors.Last().Err
	c.Errors = nil // rendered here
	status, shown := openAI(err)
	if status == http.StatusInternalServerError {
		s.o.Log.Error("a request failed", "path", c.Request.URL.Path, "err", err)
	}
	if wait := retryAfter(status, err); wait > 0 {
		c.Header("Retry-After", strconv.Itoa(wait))
	}
	httpserver.Challenge(c.Writer.Header(), status)
	c.JSON(status, shown)
}

// notify accepts a notification's JSON, and returns its id.
func (s *Server) notify(body []byte) (id string, err error) {
	n, err := notice.ParseBy(body, s.o.Find)
	if err == nil && n.Robot != "" {
		_, err = s.o.Robots.Get(n.Robot) // a notification for an unknown robot would wait forever
		if err == nil && !s.o.Robots.Trusts(n.Robot) {
			err = fmt.Errorf("%w: it is not adopted by name; perch robot adopt %s does that", device.ErrUnknownRobot, n.Robot)
		}
	}
	if err == nil {
		n, err = s.o.Notifier.Notify(n)
	}
	return n.ID, err
}

// fault gives errors of other packages an HTTP status.
func fault(err error) error {
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
		{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
		{Err: notice.ErrInvalid, Word: "bad_body", HTTP: http.StatusBadRequest},
	})
}
