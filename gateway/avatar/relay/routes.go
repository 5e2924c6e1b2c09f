package relay

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Duration of a step in a trial; see RunTrial.
const (
	defaultStep = 1500 * time.Millisecond
	minStep     = 100 * time.Millisecond
	maxStep     = 10 * time.Second
)

// Routes mounts the API for the owner.
func (r *Relays) Routes(owner gin.IRouter) {
	owner.GET("/api/v1/relays", func(c *gin.Context) {
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, r.List())
	})
	owner.POST("/api/v1/relays/:name/try", httpserver.Limit(limit.Data), func(c *gin.Context) {
		_, err := httpserver.Body(c.Request) // a body is optional
		each, bad := parseStep(c.Query("each_ms"))
		err = cmp.Or(err, bad)
		if err == nil {
			err = httpserver.Lines(c.Request.Context(), c.Writer, func(ctx context.Context, out func(string) error) error {
				begun := false
				err := r.RunTrial(ctx, c.Param("name"), each, func(step string) error {
					begun = true
					return out(step)
				})
				if err != nil && begun {
					return out("ended early: " + err.Error())
				}
				return err
			})
		}
		if err != nil {
			_ = c.Error(fault(err))
		}
	})
}

// parseStep returns the duration of a step from a number of milliseconds, or defaultStep if ms is "".
func parseStep(ms string) (time.Duration, error) {
	if ms == "" {
		return defaultStep, nil
	}
	n, err := strconv.Atoi(ms)
	if each := time.Duration(n) * time.Millisecond; err == nil && each >= minStep && each <= maxStep {
		return each, nil
	}
	return 0, &httpserver.Fault{Word: "bad_query", Sentence: "each_ms must be from 100 to 10000 milliseconds, the time for which each step is shown",
		HTTP: http.StatusBadRequest}
}

// fault converts an error to a fault with an HTTP status.
func fault(err error) error {
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: ErrNoRelay, Word: "unknown_relay", HTTP: http.StatusNotFound},
		{Err: ErrAway, Word: "relay_away", HTTP: http.StatusConflict},
		{Err: errAnother, Word: "relay_busy", HTTP: http.StatusConflict},
	})
}
