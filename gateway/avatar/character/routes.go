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

// Routes mounts the API for viewers: the list and the stream of actions, the passports, and the reports.
// isOwner must report whether a request is from the owner, who also sees private actions.
func (a *API) Routes(r gin.IRouter, isOwner func(*http.Request) bool) {
	r.GET("/api/v1/actions", func(c *gin.Context) {
		n, err := strconv.Atoi(c.DefaultQuery("n", strconv.Itoa(defaultRecent)))
		if err != nil || n < 1 || n > maxRecent {
			_ = c.Error(badQuery("n must be a number from 1 to 200"))
			return
		}
		v, err := parseView(c, isOwner)
		if err == nil {
			err = a.o.Log.WaitFor(c.Request.Context(), a.o.Bus.Seq())
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, v.recent(a.o.Log, n))
	})
	r.GET("/api/v1/actions/stream", func(c *gin.Context) {
		v, err := parseView(c, isOwner)
		if err == nil {
			err = a.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), v)
		}
		if err != nil && !errors.Is(err, event.ErrClosed) && !errors.Is(err, context.Canceled) {
			_ = c.Error(err) // only logged if the headers were already sent
		}
	})
	r.GET("/api/agents/:id", a.handlePassport(func(id string, _ []byte) (map[string]any, error) { return a.o.Passports.Passport(id) }))
	r.POST("/api/agent-actions", httpserver.Limit(limit.Question), a.serveReport)
}

// parseView returns the view that a request selects.
func parseView(c *gin.Context, isOwner func(*http.Request) bool) (view, error) {
	types, err := parseTypes(c.Query("type"), isOwner(c.Request))
	return view{c.Query("agent"), types, isOwner(c.Request)}, err
}

// serveReport handles POST /api/agent-actions.
func (a *API) serveReport(c *gin.Context) {
	body, err := httpserver.Body(c.Request)
	var r report
	if err == nil {
		err = httpserver.Decode(body, &r)
	}
	var response reportResponse
	if err == nil {
		response, err = a.handleReport(c.Request.Context(), r, cmp.Or(r.Session, c.GetHeader("X-Session-Id")))
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
			{Err: agent.ErrText, Word: "bad_body", HTTP: http.StatusBadRequest},
			{Err: agent.ErrEntry, Word: "bad_body", HTTP: http.StatusBadRequest},
		}))
	default:
		c.JSON(http.StatusAccepted, response) // not StatusOK, because the robot may not have spoken yet
	}
}

// me is an ID in a path. It selects the character of the robot or session that the request names.
const me = "me"

// OwnerRoutes mounts the API for the owner, which changes passports. The caller must check that a
// request is from the owner.
func (a *API) OwnerRoutes(r gin.IRouter) {
	agents := r.Group("/api/agents", httpserver.Limit(passport.MaxBytes))
	agents.PUT("/:id", a.handlePassport(a.o.Passports.Change))
	agents.POST("/:id/wallet", a.handlePassport(func(id string, body []byte) (map[string]any, error) {
		linked, err := passport.Wallet(body)
		if err != nil {
			return nil, err
		}
		return a.o.Passports.Change(id, linked)
	}))
	agents.DELETE("/:id/wallet", a.handlePassport(func(id string, _ []byte) (map[string]any, error) {
		return a.o.Passports.Change(id, []byte(`{"walletAddress":null,"chainId":null,"erc8004AgentId":null}`))
	}))
}

// handlePassport returns a handler that responds with the passport that handle returns. The
// arguments of handle are the ID of a character and the body of the request.
func (a *API) handlePassport(handle func(id string, body []byte) (map[string]any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		shown, err := func() (map[string]any, error) {
			body, err := httpserver.Body(c.Request)
			if err != nil {
				return nil, err
			}
			id, err := a.characterID(c)
			if err != nil {
				return nil, err
			}
			return handle(id, body)
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

// characterID returns the ID in the path of a request. If that ID is me, it returns the ID of the
// character of the robot or session that the request names, or of the default character if the request
// names neither.
func (a *API) characterID(c *gin.Context) (string, error) {
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
