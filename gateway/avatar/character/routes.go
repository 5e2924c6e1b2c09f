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
	"perch/agent/passport"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts the API for viewers. owns reports whether a request is the owner's, who sees
// private actions too.
func (a *API) Routes(r gin.IRouter, owns func(*http.Request) bool) {
	r.GET("/api/v1/actions", func(c *gin.Context) {
		n, err := strconv.Atoi(c.DefaultQuery("n", strconv.Itoa(usualRecent)))
		if err != nil || n < 1 || n > mostRecent {
			_ = c.Error(badQuery("n is a number from 1 to 200"))
			return
		}
		of, err := viewOf(c, owns)
		if err == nil {
			err = a.o.Log.Upto(c.Request.Context(), a.o.Bus.Seq())
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, of.recent(a.o.Log, n))
	})
	r.GET("/api/v1/actions/stream", func(c *gin.Context) {
		of, err := viewOf(c, owns)
		if err == nil {
			err = a.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), of)
		}
		if err != nil && !errors.Is(err, event.ErrClosed) && !errors.Is(err, context.Canceled) {
			_ = c.Error(err) // the headers may be out; then it is for the log
		}
	})
	r.GET("/api/agents/:id", a.passport(func(id string, _ []byte) (map[string]any, error) { return a.o.Passports.Passport(id) }))
	r.POST("/api/agent-actions", httpserver.Limit(limit.Question), a.report)
}

// viewOf returns the view of a request.
func viewOf(c *gin.Context, owns func(*http.Request) bool) (view, error) {
	types, err := typesOf(c.Query("type"), owns(c.Request))
	return view{c.Query("agent"), types, owns(c.Request)}, err
}

// report handles a viewer's action.
func (a *API) report(c *gin.Context) {
	body, err := httpserver.Body(c.Request)
	var r report
	if err == nil {
		err = httpserver.Decode(body, &r)
	}
	var done reported
	if err == nil {
		done, err = a.handleReport(c.Request.Context(), r, cmp.Or(r.Session, c.GetHeader("X-Session-Id")))
	}
	var limited *rateLimited
	switch {
	case errors.As(err, &limited):
		c.Header("Retry-After", strconv.Itoa(1))
		c.JSON(http.StatusTooManyRequests, limited)
	case errors.Is(err, action.ErrBad):
		_ = c.Error(&httpserver.Fault{Word: "bad_action", Sentence: err.Error(), HTTP: http.StatusBadRequest})
	case err != nil:
		_ = c.Error(httpserver.AsFault(err, []httpserver.Known{
			{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
			{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
			{Err: agent.ErrFull, Word: "memory_full", HTTP: http.StatusConflict},
			{Err: agent.ErrTooMuch, Word: "bad_body", HTTP: http.StatusBadRequest},
			{Err: agent.ErrEntry, Word: "bad_body", HTTP: http.StatusBadRequest},
		}))
	default:
		c.JSON(http.StatusAccepted, done) // the work may go on
	}
}

// me stands for the character of the caller's robot or session.
const me = "me"

// Owned mounts the API for the owner.
func (a *API) Owned(r gin.IRouter) {
	agents := r.Group("/api/agents", httpserver.Limit(passport.Most))
	agents.PUT("/:id", a.passport(a.o.Passports.Change))
	agents.POST("/:id/wallet", a.passport(func(id string, body []byte) (map[string]any, error) {
		linked, err := passport.Wallet(body)
		if err != nil {
			return nil, err
		}
		return a.o.Passports.Change(id, linked)
	}))
	agents.DELETE("/:id/wallet", a.passport(func(id string, _ []byte) (map[string]any, error) {
		return a.o.Passports.Change(id, []byte(`{"walletAddress":null,"chainId":null,"erc8004AgentId":null}`))
	}))
}

// passport returns a handler that answers with a passport.
func (a *API) passport(work func(id string, body []byte) (map[string]any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		shown, err := func() (map[string]any, error) {
			body, err := httpserver.Body(c.Request)
			if err != nil {
				return nil, err
			}
			id, err := a.characterOf(c)
			if err != nil {
				return nil, err
			}
			return work(id, body)
		}()
		if err != nil {
			_ = c.Error(httpserver.AsFault(err, []httpserver.Known{
				{Err: passport.ErrOther, Word: "other_character", HTTP: http.StatusConflict},
				{Err: passport.ErrSecret, Word: "secret", HTTP: http.StatusBadRequest},
				{Err: passport.Err, Word: "bad_passport", HTTP: http.StatusBadRequest},
				{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
				{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
			}))
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, gin.H{"agent": shown})
	}
}

// characterOf returns the id in the address, or for me the character of the robot or session in
// the request, or else the household's.
func (a *API) characterOf(c *gin.Context) (string, error) {
	id := c.Param("id")
	if id != me {
		return id, nil
	}
	var robot device.ID
	if name := c.Query("robot"); name != "" {
		var err error
		if robot, err = a.o.Find(name); err != nil {
			return "", err
		}
	}
	return a.o.Who(robot, cmp.Or(c.Query("session"), c.GetHeader("X-Session-Id"))), nil
}
