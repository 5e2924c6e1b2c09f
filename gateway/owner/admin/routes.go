package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/ota"
)

// Open mounts what anyone may ask.
func (d *API) Open(r gin.IRouter) {
	r.GET("/health", answer(http.StatusOK, func(*gin.Context) (any, error) { return gin.H{"ok": true}, d.healthy() }))
	r.GET("/ready", answer(http.StatusOK, func(*gin.Context) (any, error) { return gin.H{"parts": d.o.Parts()}, nil }))
}

// Routes mounts the admin API. It is for a router behind the admin token, or
// for a socket only its owner can open.
func (d *API) Routes(r gin.IRouter) {
	api := r.Group("/api/v1", httpserver.Limit(limit.Body))
	api.GET("/status", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.status(), nil }))
	api.GET("/devices", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.devices(time.Now()), nil }))
	d.robotRoutes(api.Group("/devices/:id"))
	api.GET("/gestures", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Gestures.All(), nil }))
	api.GET("/refused", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Refused(), nil }))
	api.DELETE("/strangers", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		n, err := d.forgetStrangers(c.Request.Context())
		return gin.H{"forgotten": n}, err
	}))
	large := r.Group("/api/v1")
	d.firmwareRoutes(large, api)
	d.assetRoutes(large, api)
	d.archiveRoutes(large, api)
	d.engineRoutes(r.Group("/api/v1", httpserver.Limit(mostWAV)))
	d.settingsRoutes(large, api)
	d.characterRoutes(r.Group("/api/v1", httpserver.Limit(limit.File)))
	api.POST("/adopt", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		var b struct {
			Robot, Code, Client string
			Replace             bool
		}
		if err := c.ShouldBindJSON(&b); err != nil {
			return nil, unreadable(err)
		}
		if (b.Robot == "") == (b.Code == "") {
			return nil, httpserver.BadBody("either robot or code is needed")
		}
		if b.Code != "" && b.Client != "" {
			return nil, httpserver.BadBody("client goes with robot; a code names its client by itself")
		}
		robot, err := d.adopt(c.Request.Context(), strings.TrimSpace(cmp.Or(b.Robot, b.Code)), strings.TrimSpace(b.Client), b.Replace)
		return d.viewOf(robot, time.Now()), err
	}))
	api.GET("/notifications", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Notices(time.Now()), nil }))
	api.POST("/notifications", answer(http.StatusAccepted, func(c *gin.Context) (any, error) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, unreadable(err)
		}
		id, err := d.notify(body)
		return gin.H{"id": id}, err
	}))
	d.memoryRoutes(api)
	d.noticeRoutes(api)
	d.timerRoutes(api)
	d.connectionRoutes(api)
	api.GET("/permissions", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.questions(), nil }))
	api.POST("/permissions/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, unreadable(err)
		}
		return gin.H{"ok": true}, d.permit(c.Param("id"), body)
	}))
	// A conversation's name may have slashes.
	api.DELETE("/conversations/*name", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.forgetConversation(strings.TrimPrefix(c.Param("name"), "/"))
	}))
	api.GET("/turns", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		most, err := strconv.Atoi(c.DefaultQuery("limit", "50"))
		if err != nil || most < 1 || most > 1000 {
			return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "limit is a number from 1 to 1000", HTTP: http.StatusBadRequest}
		}
		return d.o.Turns(most), nil
	}))
	api.GET("/diary", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		most, err := strconv.Atoi(c.DefaultQuery("n", "50"))
		if err != nil || most < 1 || most > 1000 {
			return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "n is a number from 1 to 1000", HTTP: http.StatusBadRequest}
		}
		return d.o.Diary(most), nil
	}))
	api.GET("/diary/verify", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Verify() }))
	api.GET("/events", func(c *gin.Context) {
		err := d.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), c.Query("states") == "true")
		if !streamEnded(err) {
			_ = c.Error(err) // the headers are out; it is for the log
		}
	})
}

// memoryRoutes mounts what is remembered.
func (d *API) memoryRoutes(api gin.IRouter) {
	api.GET("/memory", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return d.recall(c.Request.URL.Query(), time.Now())
	}))
	api.GET("/memory/stats", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Memory.Stats(time.Now()), d.o.Memory.Err() }))
	api.POST("/memory", body(http.StatusCreated, func(_ *gin.Context, f fact) (any, error) { return d.remember(f) }))
	api.PUT("/memory/:id", body(http.StatusOK, func(c *gin.Context, f fact) (any, error) { return d.edit(c.Param("id"), f) }))
	api.DELETE("/memory/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.o.Memory.Forget(c.Param("id"))
	}))
}

// characterRoutes mounts the characters. A manifest is larger than other bodies.
func (d *API) characterRoutes(r gin.IRouter) {
	r.GET("/characters", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Characters.List(), nil }))
	r.GET("/characters/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		m, err := d.o.Characters.Export(c.Param("id"))
		return json.RawMessage(m), err
	}))
	r.GET("/characters/:id/card", answer(http.StatusOK, func(c *gin.Context) (any, error) { return d.o.Characters.Card(c.Param("id")) }))
	r.DELETE("/characters/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.o.Characters.Remove(c.Param("id"))
	}))
	r.POST("/characters", answer(http.StatusCreated, func(c *gin.Context) (any, error) {
		data, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, unreadable(err)
		}
		if len(data) == 0 {
			return nil, httpserver.BadBody("the manifest of a character is needed")
		}
		return d.o.Characters.Import(c.Query("id"), data)
	}))
}

// noticeRoutes mounts what an owner does with notifications that are there.
func (d *API) noticeRoutes(api gin.IRouter) {
	api.POST("/notifications/:id/ack", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		if _, err := httpserver.Body(c.Request); err != nil { // it may have none
			return nil, err
		}
		return gin.H{"ok": true}, d.o.Acknowledge(c.Param("id"))
	}))
}

// timerRoutes mounts the timers of all robots.
func (d *API) timerRoutes(api gin.IRouter) {
	api.GET("/timers", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.timers(time.Now()), nil }))
	api.DELETE("/timers/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.cancelTimer(c.Request.Context(), c.Param("id"))
	}))
}

// engineRoutes mounts the engines. The body of a try may be a recording.
func (d *API) engineRoutes(api gin.IRouter) {
	api.GET("/engines", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Engines.Engines(), nil }))
	api.POST("/engines/try", func(c *gin.Context) {
		wav, tried, err := d.testEngine(c.Request.Context(), c.Query("part"), c.Request.Body)
		switch {
		case err != nil:
			_ = c.Error(fault(err))
		case wav != nil:
			c.Header("Cache-Control", "no-store")
			c.Header("X-Content-Type-Options", "nosniff")
			c.Data(http.StatusOK, "audio/wav", wav)
		default:
			c.JSON(http.StatusOK, tried)
		}
	})
}

// connectionRoutes mounts the programs around the appliance.
func (d *API) connectionRoutes(api gin.IRouter) {
	api.GET("/connections", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Connections(), nil }))
	api.GET("/found", answer(http.StatusOK, func(c *gin.Context) (any, error) { return d.scanNetwork(c.Request.Context()) }))
}

// firmwareRoutes mounts the catalogue. An image is a body larger than all
// others, and has limits of its own.
func (d *API) firmwareRoutes(large, api gin.IRouter) {
	large.POST("/firmware", answer(http.StatusCreated, func(c *gin.Context) (any, error) {
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (ota.Shown, error) {
			return d.publish(c.Request.Context(), body, c.Request.URL.Query())
		})
	}))
	api.GET("/firmware", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Firmware.List(), nil }))
	api.DELETE("/firmware/:sha256", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.o.Firmware.Remove(c.Param("sha256"))
	}))
	api.POST("/firmware/:sha256/rollout", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, unreadable(err)
		}
		return d.rollOut(c.Param("sha256"), body)
	}))
	robot := api.Group("/devices/:id")
	robot.GET("/firmware", d.robot(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) {
		return d.o.Firmware.Update(robot.ID), nil
	}))
	robot.POST("/upgrade", withBody(d, http.StatusAccepted, true, func(c *gin.Context, robot device.Robot, b upgrade) (any, error) {
		return d.upgrade(c.Request.Context(), robot, b)
	}))
}

// archiveRoutes mounts backup and restore, whose bodies are the largest of all.
func (d *API) archiveRoutes(large, api gin.IRouter) {
	api.GET("/backup", func(c *gin.Context) {
		backup, err := d.o.Archives.Backup(c.Request.Context())
		if err != nil {
			_ = c.Error(fault(err))
			return
		}
		defer backup.Close()
		c.Header("Content-Type", "application/x-tar")
		c.Header("Content-Length", strconv.FormatInt(backup.Size, 10)) // of which less is seen to be broken off
		c.Header("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": backup.Name}))
		c.Header("Cache-Control", "no-store")
		c.Header("X-Content-Type-Options", "nosniff")
		c.Header("Connection", "close") // the deadline of the last piece would be the next answer's
		if err := backup.Write(steadyWriter{c.Writer, http.NewResponseController(c.Writer)}); err != nil {
			_ = c.Error(err) // the headers are out; it is for the log
		}
	})
	large.POST("/restore", answer(http.StatusAccepted, func(c *gin.Context) (any, error) {
		restart, err := strconv.ParseBool(c.DefaultQuery("restart", "false"))
		if err != nil {
			return nil, &httpserver.Fault{Word: "bad_restart", Sentence: "restart is true or false", HTTP: http.StatusBadRequest}
		}
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (Restored, error) {
			return d.o.Archives.Restore(c.Request.Context(), body, restart)
		})
	}))
}

// mostConfigBody bounds a configuration as JSON, in which each byte may be two.
const mostConfigBody = 2<<20 + 64<<10

// settingsRoutes mounts the configuration, and what goes with a change of it: the
// restart, the doctor and the log.
func (d *API) settingsRoutes(large, api gin.IRouter) {
	config := large.Group("/config", httpserver.Limit(mostConfigBody))
	config.GET("", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.showConfig() }))
	config.POST("/check", body(http.StatusOK, func(_ *gin.Context, given toCheck) (any, error) { return d.checkConfig(given) }))
	config.PUT("", changeOf(d, func(_ string, given struct{ Set map[string]any }) map[string]any { return given.Set }))
	config.PUT("/:key", changeOf(d, func(key string, value any) map[string]any { return map[string]any{key: value} }))
	config.DELETE("/:key", func(c *gin.Context) { d.answerChange(c, map[string]any{c.Param("key"): nil}) })
	api.POST("/restart", answer(http.StatusAccepted, func(c *gin.Context) (any, error) {
		var none struct{}
		if err := c.ShouldBindJSON(&none); err != nil && !errors.Is(err, io.EOF) {
			return nil, unreadable(err)
		}
		return gin.H{"ok": true}, d.restart()
	}))
	api.GET("/doctor", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		found, err := d.examine(c.Request.Context())
		return gin.H{"items": found}, err
	}))
	api.GET("/logs", func(c *gin.Context) {
		err := d.followLogs(c.Request.Context(), c.Writer, c.Query("level"), c.GetHeader("Last-Event-ID"))
		if !streamEnded(err) {
			_ = c.Error(err) // the headers may be out; then it is for the log
		}
	})
}

// changeOf is a handler of a body that gives keys of the configuration their values. key is the
// one in the path.
func changeOf[T any](d *API, values func(key string, body T) map[string]any) gin.HandlerFunc {
	return func(c *gin.Context) {
		var body T
		if err := c.ShouldBindJSON(&body); err != nil {
			_ = c.Error(unreadable(err))
			return
		}
		d.answerChange(c, values(c.Param("key"), body))
	}
}

// answerChange changes the configuration, and answers with the faults where there are any.
func (d *API) answerChange(c *gin.Context, values map[string]any) {
	changes, err := d.changeConfig(values)
	var faults *ConfigFaults
	switch {
	case errors.As(err, &faults):
		c.JSON(faults.Status(), faults.shown())
	case err != nil:
		_ = c.Error(fault(err))
	default:
		c.JSON(http.StatusOK, changes)
	}
}

// assetRoutes mounts the files of fonts, wake words and faces, whose bodies are
// large as images are.
func (d *API) assetRoutes(large, api gin.IRouter) {
	large.POST("/assets/:name", answer(http.StatusCreated, func(c *gin.Context) (any, error) {
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (ota.Asset, error) {
			return d.o.Firmware.AddAsset(c.Request.Context(), c.Param("name"), body)
		})
	}))
	api.GET("/assets", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Firmware.Assets() }))
	api.DELETE("/assets/:name", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		return gin.H{"ok": true}, d.o.Firmware.RemoveAsset(c.Param("name"))
	}))
	api.POST("/devices/:id/assets", withBody(d, http.StatusOK, false, func(c *gin.Context, robot device.Robot, w wish) (any, error) {
		return d.pointAtAssets(c.Request.Context(), robot, w)
	}))
}

// Routes mounts the metrics. Like the admin API they are for a router behind
// the admin token, or for one that only this machine reaches.
func (m *Metrics) Routes(r gin.IRouter) {
	r.GET("/metrics", func(c *gin.Context) {
		c.Header("Cache-Control", "no-store")
		c.Header("X-Content-Type-Options", "nosniff")
		m.handler.ServeHTTP(c.Writer, c.Request)
	})
}

// robotRoutes mounts what is known of one robot and done to it.
func (d *API) robotRoutes(r gin.IRouter) {
	r.GET("", d.robot(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) {
		return d.viewOf(robot, time.Now()), nil
	}))
	r.PUT("", d.robot(http.StatusOK, func(c *gin.Context, robot device.Robot) (any, error) {
		change, err := readChange(c.Request.Body)
		if err == nil {
			robot, err = d.o.Robots.Configure(robot.ID, change)
		}
		return d.viewOf(robot, time.Now()), err
	}))
	r.DELETE("", d.robotAction(d.forget))
	r.POST("/token", withBody(d, http.StatusOK, true, func(c *gin.Context, robot device.Robot, w tokenWanted) (any, error) {
		c.Header("Cache-Control", "no-store")
		return d.token(robot, w)
	}))
	r.POST("/abort", d.robotAction(func(ctx context.Context, id device.ID) error { return d.o.Talk.Abort(ctx, id) }))
	r.POST("/reboot", d.robotAction(func(ctx context.Context, id device.ID) error { return d.o.Talk.Reboot(ctx, id) }))
	r.POST("/say", withBody(d, http.StatusAccepted, false, func(c *gin.Context, robot device.Robot, b speech) (any, error) {
		return d.sendSpeech(c.Request.Context(), robot.ID, b)
	}))
	r.POST("/alert", withBody(d, http.StatusAccepted, false, func(c *gin.Context, robot device.Robot, b alert) (any, error) {
		return d.alert(c.Request.Context(), robot.ID, b)
	}))
	r.POST("/gesture", withBody(d, http.StatusAccepted, false, func(_ *gin.Context, robot device.Robot, g gesture) (any, error) {
		return d.gesture(robot, g)
	}))
	r.POST("/identify", d.robot(http.StatusAccepted, func(c *gin.Context, robot device.Robot) (any, error) {
		return d.identify(c.Request.Context(), robot)
	}))
	r.GET("/tools", d.robot(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) { return d.tools(robot.ID), nil }))
	r.POST("/tools/:name", withBody(d, http.StatusOK, true, func(c *gin.Context, robot device.Robot, b call) (any, error) {
		return d.call(c.Request.Context(), robot.ID, c.Param("name"), b)
	}))
	r.GET("/picture", d.withRobot(func(c *gin.Context, robot device.Robot) error {
		p, err := d.picture(robot.ID)
		if err == nil {
			c.Header("Cache-Control", "no-store") // the next one has the same address
			c.Header("X-Content-Type-Options", "nosniff")
			c.Data(http.StatusOK, p.Type, p.Data)
		}
		return err
	}))
	r.GET("/record", d.withRobot(func(c *gin.Context, robot device.Robot) error {
		err := httpserver.Lines(c.Request.Context(), c.Writer, func(ctx context.Context, out func(string) error) error {
			return d.o.Talk.Record(ctx, robot.ID, out)
		})
		if streamEnded(err) {
			return nil
		}
		return err
	}))
}

// withRobot is a handler of something about a robot that has been here.
func (d *API) withRobot(work func(*gin.Context, device.Robot) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		id, err := d.o.Robots.Resolve(c.Param("id"))
		var robot device.Robot
		if err == nil {
			robot, err = d.o.Robots.Get(id)
		}
		if err == nil {
			err = work(c, robot)
		}
		// Once the client has gone, what fails for it is no fault.
		if err != nil && c.Request.Context().Err() == nil {
			_ = c.Error(fault(err))
		}
	}
}

// robot is a known robot's handler that answers with JSON.
func (d *API) robot(status int, work func(*gin.Context, device.Robot) (any, error)) gin.HandlerFunc {
	return d.withRobot(func(c *gin.Context, robot device.Robot) error {
		body, err := work(c, robot)
		if err == nil {
			c.JSON(status, body)
		}
		return err
	})
}

// withBody is a known robot's handler of a body of JSON that answers with JSON. Where
// there may be none, work is given the zero body.
func withBody[T any](d *API, status int, mayBeEmpty bool, work func(*gin.Context, device.Robot, T) (any, error)) gin.HandlerFunc {
	return d.robot(status, func(c *gin.Context, robot device.Robot) (any, error) {
		var body T
		if err := c.ShouldBindJSON(&body); err != nil && !(mayBeEmpty && errors.Is(err, io.EOF)) {
			return nil, unreadable(err)
		}
		return work(c, robot, body)
	})
}

// robotAction is a known robot's handler of what is done to it and has no answer.
func (d *API) robotAction(do func(context.Context, device.ID) error) gin.HandlerFunc {
	return d.robot(http.StatusAccepted, func(c *gin.Context, robot device.Robot) (any, error) {
		return gin.H{"ok": true}, do(c.Request.Context(), robot.ID)
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

// body is a handler of a body of JSON that answers with JSON.
func body[T any](status int, work func(*gin.Context, T) (any, error)) gin.HandlerFunc {
	return answer(status, func(c *gin.Context) (any, error) {
		var given T
		if err := c.ShouldBindJSON(&given); err != nil {
			return nil, unreadable(err)
		}
		return work(c, given)
	})
}

func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return httpserver.BadBody("the body is not the JSON object that belongs here: " + err.Error())
}

// fault gives the errors of other packages a code and a status. An error that has
// them is left as it is.
func fault(err error) error {
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
		{Err: device.ErrUnknownRobot, Word: "unknown_robot", HTTP: http.StatusNotFound},
		{Err: device.ErrNotAdopted, Word: "not_adopted", HTTP: http.StatusConflict},
		{Err: device.ErrName, Word: "bad_name", HTTP: http.StatusBadRequest},
		{Err: device.ErrTaken, Word: "name_taken", HTTP: http.StatusConflict},
		{Err: device.ErrFixed, Word: "set_in_file", HTTP: http.StatusConflict},
		{Err: device.ErrSetting, Word: "bad_setting", HTTP: http.StatusBadRequest},
		{Err: device.ErrArguments, Word: "bad_arguments", HTTP: http.StatusBadRequest},
		{Err: device.ErrTries, Word: "too_many_tries", HTTP: http.StatusTooManyRequests},
		{Err: device.ErrNothingToAdopt, Word: "nothing_to_adopt", HTTP: http.StatusNotFound},
		{Err: device.ErrClaimed, Word: "claimed", HTTP: http.StatusConflict},
		{Err: device.ErrContested, Word: "contested", HTTP: http.StatusConflict},
		{Err: device.ErrAmbiguous, Word: "contested", HTTP: http.StatusConflict},
		{Err: agent.ErrForgotten, Word: "unknown_memory", HTTP: http.StatusNotFound},
		{Err: ErrNoEngine, Word: "unknown_engine", HTTP: http.StatusNotFound},
		{Err: agent.ErrTooMuch, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrEntry, Word: "bad_memory", HTTP: http.StatusBadRequest},
		{Err: notice.ErrNotFound, Word: "unknown_notification", HTTP: http.StatusNotFound},
		{Err: notice.ErrOnRobot, Word: "timer_on_robot", HTTP: http.StatusConflict},
		{Err: notice.ErrInvalid, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrNoQuestion, Word: "unknown_permission", HTTP: http.StatusNotFound},
	})
}
