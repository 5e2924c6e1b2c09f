package bridge

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Routes mounts what voice servers and programs use. It is for a router behind
// the bridge key, or for one that only this machine reaches. GET /health is
// the network's, and mounted elsewhere.
func (d *API) Routes(r gin.IRouter) {
	api := r.Group("/api", httpserver.Limit(limit.Body))
	api.POST("/message", post(d.message))
	api.POST("/voice/escalate", post(d.escalate))
	api.POST("/voice/remember", post(func(_ context.Context, body []byte) (done, error) { return d.remember(body) }))
	api.POST("/voice/memory_log", post(func(_ context.Context, body []byte) (done, error) { return d.memoryLog(body) }))
	api.POST("/perception/event", post(d.perceive))
	api.GET("/perception/state", answer(func(c *gin.Context) (any, error) {
		states, id, err := d.states(c.Query("device_id"))
		if err == nil {
			c.Header("Last-Event-ID", id)
		}
		return states, err
	}))
	api.GET("/perception/recent/:robot", answer(func(c *gin.Context) (any, error) {
		return d.recent(c.Param("robot"), c.DefaultQuery("limit", "50"))
	}))
	api.GET("/perception/feed", func(c *gin.Context) {
		if err := d.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), c.Query("device_id")); err != nil {
			_ = c.Error(fault(err))
		}
	})
}

// Admin mounts the commands for robots, under both of its prefixes. It is
// for a router behind the admin token.
func (d *API) Admin(r gin.IRouter) {
	for _, prefix := range []string{"/admin", "/xiaozhi/admin"} {
		g := r.Group(prefix, httpserver.Limit(limit.Body))
		for path, o := range map[string]struct {
			check func(*command) error
			do    act
		}{
			"/inject-text":         {hasText, d.injectText},
			"/say":                 {hasText, d.speak},
			"/abort":               {nothing, d.abort},
			"/set-head-angles":     {hasAngles, d.turnHead},
			"/set-state":           {hasState, d.setState},
			"/set-toggle":          {hasToggle, d.setToggle},
			"/set-face-identified": {nothing, d.setFaceIdentified},
			"/take-photo":          {hasQuestion, d.takePicture},
			"/play-asset":          {d.hasAsset, d.playAsset},
		} {
			g.POST(path, post(func(ctx context.Context, body []byte) (commandResult, error) { return d.run(ctx, body, o.check, o.do) }))
		}
		g.GET("/devices", answer(func(*gin.Context) (any, error) { return gin.H{"devices": d.devices()}, nil }))
		g.GET("/songs", answer(func(*gin.Context) (any, error) { return d.songs(), nil }))
	}
}

// post is a handler of a body of JSON that answers with JSON or an error.
func post[T any](work func(ctx context.Context, body []byte) (T, error)) gin.HandlerFunc {
	return answer(func(c *gin.Context) (any, error) {
		body, err := httpserver.Body(c.Request)
		if err != nil {
			return nil, err
		}
		return work(c.Request.Context(), body)
	})
}

// answer is a handler that answers with JSON or an error.
func answer(work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := work(c)
		switch {
		case err == nil:
			c.JSON(http.StatusOK, body)
		case c.Request.Context().Err() == nil:
			_ = c.Error(fault(err))
		}
		// Once the client has gone, an error is not a failure.
	}
}
