package admin

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/device"
	"perch/gateway/door"
)

// mostBody bounds the bodies of this door, and mostSaid what a robot is given
// to say at once, in bytes.
const (
	mostBody = 64 << 10
	mostSaid = 4000
)

// Open mounts what anyone may ask.
func (d *Door) Open(r gin.IRouter) {
	r.GET("/health", answer(http.StatusOK, func(*gin.Context) (any, error) { return gin.H{"ok": true}, d.healthy() }))
	r.GET("/ready", answer(http.StatusOK, func(*gin.Context) (any, error) { return gin.H{"parts": d.o.Parts()}, nil }))
}

// Routes mounts the admin API. It is for a router behind the admin token, or
// for a socket only its owner can open.
func (d *Door) Routes(r gin.IRouter) {
	api := r.Group("/api/v1", door.Limit(mostBody))
	api.GET("/status", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.status(), nil }))
	api.GET("/devices", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.devices(time.Now()), nil }))
	api.GET("/devices/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		id, err := device.ParseID(c.Param("id"))
		if err != nil {
			return nil, err
		}
		robot, err := d.o.Robots.Get(id)
		return d.show(robot, time.Now()), err
	}))
	api.DELETE("/devices/:id", d.act(func(c *gin.Context, id device.ID) error { return d.forget(c.Request.Context(), id) }))
	api.POST("/devices/:id/say", d.act(func(c *gin.Context, id device.ID) error {
		var b struct {
			Text string `json:"text"`
		}
		if err := c.ShouldBindJSON(&b); err != nil {
			return unreadable(err)
		}
		if b.Text == "" || len(b.Text) > mostSaid {
			return &door.Fault{Word: "bad_body", Sentence: "text is needed, of at most 4000 bytes", HTTP: http.StatusBadRequest}
		}
		return d.o.Talk.Say(c.Request.Context(), id, b.Text)
	}))
	api.POST("/devices/:id/abort", d.act(func(c *gin.Context, id device.ID) error { return d.o.Talk.Abort(c.Request.Context(), id) }))
	api.POST("/adopt", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		var b struct{ Robot, Code string }
		if err := c.ShouldBindJSON(&b); err != nil {
			return nil, unreadable(err)
		}
		if (b.Robot == "") == (b.Code == "") {
			return nil, &door.Fault{Word: "bad_body", Sentence: "either robot or code is needed", HTTP: http.StatusBadRequest}
		}
		robot, err := d.o.Robots.Adopt(strings.TrimSpace(cmp.Or(b.Robot, b.Code)))
		return d.show(robot, time.Now()), err
	}))
	api.GET("/memory", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return d.o.Memory.Search(c.Query("q"), time.Now()), nil
	}))
	api.DELETE("/memory/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.o.Memory.Forget(c.Param("id"))
	}))
	api.GET("/turns", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		most, err := strconv.Atoi(c.DefaultQuery("limit", "50"))
		if err != nil || most < 1 || most > 1000 {
			return nil, &door.Fault{Word: "bad_limit", Sentence: "limit is a number from 1 to 1000", HTTP: http.StatusBadRequest}
		}
		return d.o.Turns(most), nil
	}))
	api.GET("/events", func(c *gin.Context) {
		err := door.Stream(c.Request.Context(), c.Writer, d.feed(c.GetHeader("Last-Event-ID")))
		if !streamEnded(err) {
			_ = c.Error(err) // the headers are out; it is for the log
		}
	})
}

// act is a handler of something done to one robot.
func (d *Door) act(do func(*gin.Context, device.ID) error) gin.HandlerFunc {
	return answer(http.StatusAccepted, func(c *gin.Context) (any, error) {
		id, err := device.ParseID(c.Param("id"))
		if err == nil {
			_, err = d.o.Robots.Get(id)
		}
		if err == nil {
			err = do(c, id)
		}
		return gin.H{"ok": true}, err
	})
}

// answer is a handler that answers with JSON or an error.
func answer(status int, work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := work(c)
		if err != nil {
			_ = c.Error(fault(err))
			return
		}
		c.JSON(status, body)
	}
}

func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return &door.Fault{Word: "bad_body", Sentence: "the body is not the JSON object that belongs here: " + err.Error(), HTTP: http.StatusBadRequest}
}

// fault gives the errors of other packages their place in HTTP. An error that
// says itself how it is shown is left as it is.
func fault(err error) error {
	places := []struct {
		err  error
		word string
		http int
	}{
		{device.ErrID, "bad_robot_id", http.StatusBadRequest},
		{device.ErrUnknownRobot, "unknown_robot", http.StatusNotFound},
		{device.ErrNothingToAdopt, "nothing_to_adopt", http.StatusNotFound},
		{agent.ErrForgotten, "unknown_memory", http.StatusNotFound},
	}
	for _, p := range places {
		if errors.Is(err, p.err) {
			return &door.Fault{Word: p.word, Sentence: err.Error(), HTTP: p.http}
		}
	}
	return err
}
