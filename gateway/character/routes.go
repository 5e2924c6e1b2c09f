package character

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/action"
	"perch/device"
	"perch/event"
	"perch/gateway/door"
)

// Routes mounts the actions behind a lock, or behind none for this machine.
func (d *Door) Routes(r gin.IRouter) {
	r.GET("/api/v1/actions", func(c *gin.Context) {
		n, err := strconv.Atoi(c.DefaultQuery("n", strconv.Itoa(usualRecent)))
		if err != nil || n < 1 || n > mostRecent {
			_ = c.Error(badQuery("n is a number from 1 to 200"))
			return
		}
		types, err := typesOf(c.Query("type"))
		if err == nil {
			err = d.o.Log.Upto(c.Request.Context(), d.o.Bus.Seq())
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, d.o.Log.Recent(c.Query("agent"), types, n))
	})
	r.GET("/api/v1/actions/stream", func(c *gin.Context) {
		types, err := typesOf(c.Query("type"))
		if err == nil {
			err = d.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), c.Query("agent"), types)
		}
		if err != nil && !errors.Is(err, event.ErrClosed) && !errors.Is(err, context.Canceled) {
			_ = c.Error(err) // the headers may be out; then it is for the log
		}
	})
	r.POST("/api/agent-actions", door.Limit(mostBody), d.report)
}

// report takes a viewer's action.
func (d *Door) report(c *gin.Context) {
	body, err := door.Body(c.Request)
	var r report
	if err == nil {
		err = door.Decode(body, &r)
	}
	var done reported
	if err == nil {
		done, err = d.take(c.Request.Context(), r, cmp.Or(r.Session, c.GetHeader("X-Session-Id")))
	}
	var limited *rateLimited
	switch {
	case errors.As(err, &limited):
		c.Header("Retry-After", strconv.Itoa(1))
		c.JSON(http.StatusTooManyRequests, limited)
	case errors.Is(err, action.ErrBad):
		_ = c.Error(&door.Fault{Word: "bad_action", Sentence: err.Error(), HTTP: http.StatusBadRequest})
	case err != nil:
		_ = c.Error(door.AsFault(err, []door.Known{
			{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
			{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
			{Err: agent.ErrTooMuch, Word: "bad_body", HTTP: http.StatusBadRequest},
		}))
	default:
		c.JSON(http.StatusAccepted, done) // it is for others to act on
	}
}
