package bridge

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts the routes for voice servers and other programs. The router must require the bridge key, or be reachable
// only from this machine. The API's GET /health is served by gateway/owner/admin.
func (a *API) Routes(r gin.IRouter) {
	api := r.Group("/api", httpserver.Limit(limit.Body))
	api.POST("/message", post(a.message))
	api.POST("/voice/escalate", post(a.escalate))
	api.POST("/voice/remember", post(a.remember))
	api.POST("/voice/memory_log", post(a.memoryLog))
	api.POST("/perception/event", post(a.perceive))
	api.GET("/perception/state", jsonHandler(func(c *gin.Context) (any, error) {
		states, id, err := a.states(c.Query("device_id"))
		if err == nil {
			c.Header("Last-Event-ID", id)
		}
		return states, err
	}))
	api.GET("/perception/recent/:robot", jsonHandler(func(c *gin.Context) (any, error) {
		return a.recent(c.Param("robot"), c.DefaultQuery("limit", "50"))
	}))
	api.GET("/perception/feed", func(c *gin.Context) {
		if err := a.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), c.Query("device_id")); err != nil {
			_ = c.Error(fault(err))
		}
	})
}

// Admin mounts the commands for robots and the lists of robots and songs, each under /admin and /xiaozhi/admin. The router
// must require the admin token.
func (a *API) Admin(r gin.IRouter) {
	for _, prefix := range []string{"/admin", "/xiaozhi/admin"} {
		g := r.Group(prefix, httpserver.Limit(limit.Body))
		for path, o := range map[string]struct {
			check func(*command) error
			do    action
		}{
			"/inject-text":         {checkText, a.injectText},
			"/say":                 {checkText, a.speak},
			"/abort":               {noCheck, a.abort},
			"/set-head-angles":     {checkAngles, a.turnHead},
			"/set-state":           {checkState, a.setState},
			"/set-toggle":          {checkToggle, a.setToggle},
			"/set-face-identified": {noCheck, a.setFaceIdentified},
			"/take-photo":          {checkQuestion, a.takePicture},
			"/play-asset":          {a.checkAsset, a.playAsset},
		} {
			g.POST(path, post(func(ctx context.Context, body []byte) (commandResult, error) {
				return a.runCommand(ctx, body, o.check, o.do)
			}))
		}
		g.GET("/devices", jsonHandler(func(*gin.Context) (any, error) { return gin.H{"devices": a.devices()}, nil }))
		g.GET("/songs", jsonHandler(func(*gin.Context) (any, error) { return a.songs(), nil }))
	}
}

// post is like jsonHandler for work that needs the body of the request.
func post[T any](work func(ctx context.Context, body []byte) (T, error)) gin.HandlerFunc {
	return jsonHandler(func(c *gin.Context) (any, error) {
		body, err := httpserver.Body(c.Request)
		if err != nil {
			return nil, err
		}
		return work(c.Request.Context(), body)
	})
}

// jsonHandler returns a handler that responds with the result of work as JSON. It passes an error of work to the router's
// error handler (package httpserver), but ignores an error after the client has disconnected.
func jsonHandler(work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := work(c)
		switch {
		case err == nil:
			c.JSON(http.StatusOK, body)
		case c.Request.Context().Err() == nil:
			_ = c.Error(fault(err))
		}
	}
}
