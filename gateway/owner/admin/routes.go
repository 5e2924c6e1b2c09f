package admin

import (
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

// OpenRoutes mounts the routes that need no token: health and readiness.
func (a *API) OpenRoutes(r gin.IRouter) {
	r.GET("/health", actionHandler(http.StatusOK, func(*gin.Context) error { return a.healthy() }))
	r.GET("/ready", getHandler(func() (any, error) { return gin.H{"parts": a.o.Parts()}, nil }))
}

// Routes mounts the API. The router must require the admin token, or serve a Unix socket that only the owner
// can open.
func (a *API) Routes(r gin.IRouter) {
	api, large := r.Group("/api/v1", httpserver.Limit(limit.Body)), r.Group("/api/v1") // large has no limit for bodies
	a.robotRoutes(api.Group("/devices/:id"))
	a.firmwareRoutes(large, api)
	a.assetRoutes(large, api)
	a.archiveRoutes(large, api)
	a.engineRoutes(r.Group("/api/v1", httpserver.Limit(maxWAV)))
	a.settingsRoutes(large, api)
	a.characterRoutes(r.Group("/api/v1", httpserver.Limit(limit.File)))
	a.memoryRoutes(api.Group("/memory"))
	a.memoryRoutes(r.Group("/api/agent-memory", httpserver.Limit(limit.Body))) // the address of the three.ws agent system
	a.noticeRoutes(api)
	api.GET("/status", getHandler(func() (any, error) { return a.status(), nil }))
	api.GET("/sessions", getHandler(func() (any, error) { return a.sessions(time.Now()), nil }))
	api.GET("/devices", getHandler(func() (any, error) { return a.devices(time.Now()), nil }))
	api.POST("/devices", bodyHandler(http.StatusCreated, func(c *gin.Context, b byHand) (any, error) {
		noStore(c)
		return a.addByHand(b)
	}))
	api.GET("/speech/models", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) { return a.o.Speech.List(c.Request.Context()), nil }))
	api.POST("/speech/models/:name", rawBodyHandler(http.StatusAccepted, func(c *gin.Context, _ []byte) (any, error) {
		return gin.H{"ok": true}, a.o.Speech.Get(c.Request.Context(), c.Param("name"))
	}))
	api.DELETE("/speech/models/:name", actionHandler(http.StatusOK, func(c *gin.Context) error {
		return a.o.Speech.Remove(c.Request.Context(), c.Param("name"))
	}))
	api.GET("/music", getHandler(func() (any, error) { return append([]string{}, a.o.Talk.Music()...), nil }))
	api.GET("/gestures", getHandler(func() (any, error) { return a.o.Gestures, nil }))
	api.GET("/refused", getHandler(func() (any, error) { return a.o.Refused(), nil }))
	api.DELETE("/refused", actionHandler(http.StatusOK, func(*gin.Context) error { a.o.ForgetRefused(); return nil }))
	api.GET("/connections", getHandler(func() (any, error) { return a.o.Connections(), nil }))
	api.GET("/found", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) { return a.scanNetwork(c.Request.Context()) }))
	api.DELETE("/strangers", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) {
		n, err := a.forgetStrangers(c.Request.Context())
		return gin.H{"forgotten": n}, err
	}))
	api.POST("/adopt", bodyHandler(http.StatusOK, func(c *gin.Context, b adoption) (any, error) {
		robot, err := a.adopt(c.Request.Context(), b)
		return a.viewOf(robot, time.Now()), err
	}))
	// The name of a conversation may contain slashes.
	api.DELETE("/conversations/*name", actionHandler(http.StatusOK, func(c *gin.Context) error {
		return a.forgetConversation(strings.TrimPrefix(c.Param("name"), "/"))
	}))
	api.GET("/turns", latestHandler("limit", a.o.Turns))
	api.GET("/days", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) { return a.days(c.Query("robot")) }))
	api.GET("/diary", latestHandler("n", a.o.Diary))
	api.GET("/diary/verify", getHandler(a.o.Verify))
	api.GET("/events", func(c *gin.Context) {
		err := a.stream(c.Request.Context(), c.Writer, c.GetHeader("Last-Event-ID"), c.Query("states") == "true")
		if !streamEnded(err) {
			_ = c.Error(err) // only logged if the headers were sent already
		}
	})
}

// memoryRoutes mounts the routes of the memory.
func (a *API) memoryRoutes(r gin.IRouter) {
	r.GET("", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) {
		return a.recall(c.Request.URL.Query(), time.Now())
	}))
	r.GET("/stats", getHandler(func() (any, error) { return a.o.Memory.Stats(time.Now()), a.o.Memory.Err() }))
	r.POST("", bodyHandler(http.StatusCreated, func(_ *gin.Context, f agent.Fact) (any, error) { return a.remember(f) }))
	r.PUT("/:id", bodyHandler(http.StatusOK, func(c *gin.Context, f agent.Fact) (any, error) { return a.editMemory(c.Param("id"), f) }))
	r.DELETE("/:id", actionHandler(http.StatusOK, func(c *gin.Context) error { return a.o.Memory.Forget(c.Param("id")) }))
}

// characterRoutes mounts the routes of the characters. The router must allow the size of a manifest.
func (a *API) characterRoutes(r gin.IRouter) {
	r.GET("/characters", getHandler(func() (any, error) { return a.o.Characters.List(), nil }))
	r.GET("/characters/:id", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) {
		m, err := a.o.Characters.Export(c.Param("id"))
		return json.RawMessage(m), err
	}))
	r.GET("/characters/:id/card", jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) { return a.o.Characters.Card(c.Param("id")) }))
	r.DELETE("/characters/:id", actionHandler(http.StatusOK, func(c *gin.Context) error { return a.o.Characters.Remove(c.Param("id")) }))
	r.POST("/characters", rawBodyHandler(http.StatusCreated, func(c *gin.Context, manifest []byte) (any, error) {
		if len(manifest) == 0 {
			return nil, httpserver.BadBody("the manifest of a character is needed")
		}
		return a.o.Characters.Import(c.Query("id"), manifest)
	}))
}

// noticeRoutes mounts the routes of notifications, timers and questions.
func (a *API) noticeRoutes(api gin.IRouter) {
	api.GET("/notifications", getHandler(func() (any, error) { return a.o.Notices(time.Now()), nil }))
	api.POST("/notifications", rawBodyHandler(http.StatusAccepted, func(_ *gin.Context, body []byte) (any, error) {
		id, err := a.notify(body)
		return gin.H{"id": id}, err
	}))
	api.POST("/notifications/:id/ack", rawBodyHandler(http.StatusOK, func(c *gin.Context, _ []byte) (any, error) {
		return gin.H{"ok": true}, a.o.Acknowledge(c.Param("id"))
	}))
	api.GET("/timers", getHandler(func() (any, error) { return a.timers(time.Now()), nil }))
	api.POST("/timers", bodyHandler(http.StatusCreated, func(c *gin.Context, r timerRequest) (any, error) {
		return a.setTimer(c.Request.Context(), r, time.Now())
	}))
	api.DELETE("/timers/:id", actionHandler(http.StatusOK, func(c *gin.Context) error {
		return a.cancelTimer(c.Request.Context(), c.Param("id"))
	}))
	api.GET("/permissions", getHandler(func() (any, error) { return a.questions(), nil }))
	api.POST("/permissions/:id", rawBodyHandler(http.StatusOK, func(c *gin.Context, body []byte) (any, error) {
		return gin.H{"ok": true}, a.answerQuestion(c.Param("id"), body)
	}))
}

// engineRoutes mounts the routes of the engines. The router must allow the size of a recording.
func (a *API) engineRoutes(api gin.IRouter) {
	api.GET("/engines", getHandler(func() (any, error) { return a.o.Engines.Engines(), nil }))
	api.GET("/engines/kinds", getHandler(func() (any, error) { return a.o.Engines.Kinds(), nil }))
	api.POST("/engines/try", func(c *gin.Context) {
		wav, tried, err := a.testEngine(c.Request.Context(), c.Query("part"), c.Request.Body)
		switch {
		case err != nil:
			_ = c.Error(asFault(err))
		case wav != nil:
			noStore(c)
			c.Data(http.StatusOK, "audio/wav", wav)
		default:
			c.JSON(http.StatusOK, tried)
		}
	})
}

// firmwareRoutes mounts the routes of the firmware catalogue, which limits the size of images itself.
func (a *API) firmwareRoutes(large, api gin.IRouter) {
	large.POST("/firmware", jsonHandler(http.StatusCreated, func(c *gin.Context) (any, error) {
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (ota.Shown, error) {
			return a.addFirmware(c.Request.Context(), body, c.Request.URL.Query())
		})
	}))
	api.GET("/firmware", getHandler(func() (any, error) { return a.o.Firmware.List(), nil }))
	api.DELETE("/firmware/:sha256", actionHandler(http.StatusOK, func(c *gin.Context) error { return a.o.Firmware.Remove(c.Param("sha256")) }))
	api.POST("/firmware/:sha256/rollout", rawBodyHandler(http.StatusOK, func(c *gin.Context, body []byte) (any, error) {
		return a.rollOut(c.Param("sha256"), body)
	}))
	robot := api.Group("/devices/:id")
	robot.GET("/firmware", a.robotHandler(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) {
		return a.o.Firmware.Update(robot.ID), nil
	}))
	robot.POST("/upgrade", robotBodyHandler(a, http.StatusAccepted, true, func(c *gin.Context, robot device.Robot, b upgrade) (any, error) {
		return a.upgradeRobot(c.Request.Context(), robot, b)
	}))
}

// archiveRoutes mounts the routes of backups, whose bodies are the largest.
func (a *API) archiveRoutes(large, api gin.IRouter) {
	api.GET("/backup", func(c *gin.Context) {
		backup, err := a.o.Archives.Backup(c.Request.Context())
		if err != nil {
			_ = c.Error(asFault(err))
			return
		}
		defer backup.Close()
		noStore(c)
		c.Header("Content-Type", "application/x-tar")
		c.Header("Content-Length", strconv.FormatInt(backup.Size, 10)) // lets a client detect an incomplete backup
		c.Header("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": backup.Name}))
		c.Header("Connection", "close") // the write deadline would remain for the next response
		if err := backup.Write(steadyWriter{c.Writer, http.NewResponseController(c.Writer)}); err != nil {
			_ = c.Error(err) // only logged, since the headers were sent already
		}
	})
	large.POST("/restore", jsonHandler(http.StatusAccepted, func(c *gin.Context) (any, error) {
		restart, err := strconv.ParseBool(c.DefaultQuery("restart", "false"))
		if err != nil {
			return nil, &httpserver.Fault{Word: "bad_restart", Sentence: "restart is true or false", HTTP: http.StatusBadRequest}
		}
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (Restored, error) {
			return a.o.Archives.Restore(c.Request.Context(), body, restart)
		})
	}))
}

// maxConfigBody is the maximum size of a body with a configuration, in bytes. The text has at most 1 MiB, JSON may
// need two bytes for each byte of it, and 64 KiB are left for the rest of the body.
const maxConfigBody = 2<<20 + 64<<10

// settingsRoutes mounts the routes of the configuration, and the routes that owners need with a change: the restart, the
// doctor and the log.
func (a *API) settingsRoutes(large, api gin.IRouter) {
	config := large.Group("/config", httpserver.Limit(maxConfigBody), requires(a.o.Settings != nil, "its configuration"))
	config.GET("", getHandler(func() (any, error) { return a.o.Settings.Read() }))
	config.POST("/check", bodyHandler(http.StatusOK, func(_ *gin.Context, c toCheck) (any, error) { return a.checkConfig(c) }))
	config.PUT("", changeHandler(a, func(_ string, change struct{ Set map[string]any }) map[string]any { return change.Set }))
	config.PUT("/:key", changeHandler(a, func(key string, value any) map[string]any { return map[string]any{key: value} }))
	config.DELETE("/:key", func(c *gin.Context) { a.respondToChange(c, map[string]any{c.Param("key"): nil}) })
	api.POST("/restart", requires(a.o.Restart != nil, "a way to restart it"), actionHandler(http.StatusAccepted, func(c *gin.Context) error {
		if _, err := decodeBody[struct{}](c, true); err != nil {
			return err
		}
		return a.restart()
	}))
	api.GET("/doctor", requires(a.o.Doctor != nil, "a doctor; run perch doctor instead"), jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) {
		found, err := a.examine(c.Request.Context())
		return gin.H{"items": found}, err
	}))
	api.GET("/logs", requires(a.o.Logs != nil, "a stored log"), func(c *gin.Context) {
		err := a.followLogs(c.Request.Context(), c.Writer, c.Query("level"), c.GetHeader("Last-Event-ID"))
		if !streamEnded(err) {
			_ = c.Error(err) // only logged if the headers were sent already
		}
	})
}

// requires returns a handler that refuses requests if isPresent is false: this appliance was then started without
// the given part, which the requests need.
func requires(isPresent bool, part string) gin.HandlerFunc {
	return httpserver.Guard(func(*http.Request) error {
		if isPresent {
			return nil
		}
		return &httpserver.Fault{Word: "not_here", Sentence: "this appliance was started without " + part, HTTP: http.StatusNotFound}
	})
}

// changeHandler returns a handler that changes the configuration. values returns the new values by key, from the
// parameter key of the path and the JSON body.
func changeHandler[T any](a *API, values func(key string, body T) map[string]any) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := decodeBody[T](c, false)
		if err != nil {
			_ = c.Error(err)
			return
		}
		a.respondToChange(c, values(c.Param("key"), body))
	}
}

// respondToChange changes the configuration, and responds with the result or with the faults.
func (a *API) respondToChange(c *gin.Context, values map[string]any) {
	changes, err := a.changeConfig(values)
	var faults *ConfigFaults
	switch {
	case errors.As(err, &faults):
		c.JSON(faults.Status(), gin.H{"error": gin.H{"code": faults.Code(), "message": faults.Sentence}, "faults": faults.Faults})
	case err != nil:
		_ = c.Error(asFault(err))
	default:
		c.JSON(http.StatusOK, changes)
	}
}

// assetRoutes mounts the routes of the asset files, which contain fonts, wake words and faces. The catalogue limits
// their size itself.
func (a *API) assetRoutes(large, api gin.IRouter) {
	large.POST("/assets/:name", jsonHandler(http.StatusCreated, func(c *gin.Context) (any, error) {
		return receiveUpload(c.Writer, c.Request, func(body io.Reader) (ota.Asset, error) {
			return a.o.Firmware.AddAsset(c.Request.Context(), c.Param("name"), body)
		})
	}))
	api.GET("/assets", getHandler(func() (any, error) { return a.o.Firmware.Assets() }))
	api.DELETE("/assets/:name", actionHandler(http.StatusOK, func(c *gin.Context) error { return a.o.Firmware.RemoveAsset(c.Param("name")) }))
	api.POST("/devices/:id/assets", robotBodyHandler(a, http.StatusOK, false, func(c *gin.Context, robot device.Robot, b assetChoice) (any, error) {
		return a.pointAtAssets(c.Request.Context(), robot, b)
	}))
}

// Routes mounts the metrics. The router must require the admin token, or be reachable only from this machine.
func (m *Metrics) Routes(r gin.IRouter) {
	r.GET("/metrics", func(c *gin.Context) {
		noStore(c)
		m.handler.ServeHTTP(c.Writer, c.Request)
	})
}

// robotRoutes mounts the routes of a single robot: its state and the actions on it.
func (a *API) robotRoutes(r gin.IRouter) {
	r.GET("", a.robotHandler(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) {
		return a.viewOf(robot, time.Now()), nil
	}))
	r.PUT("", a.robotHandler(http.StatusOK, func(c *gin.Context, robot device.Robot) (any, error) {
		change, err := readChange(c.Request.Body)
		if err == nil {
			robot, err = a.o.Robots.Configure(robot.ID, change)
		}
		return a.viewOf(robot, time.Now()), err
	}))
	r.DELETE("", a.robotActionHandler(a.forget))
	r.POST("/token", robotBodyHandler(a, http.StatusOK, true, func(c *gin.Context, robot device.Robot, w tokenRequest) (any, error) {
		c.Header("Cache-Control", "no-store")
		return a.issueToken(robot, w)
	}))
	r.POST("/abort", a.robotActionHandler(func(ctx context.Context, id device.ID) error { return a.o.Talk.Abort(ctx, id) }))
	r.POST("/reboot", a.robotActionHandler(func(ctx context.Context, id device.ID) error { return a.o.Talk.Reboot(ctx, id) }))
	r.POST("/say", robotBodyHandler(a, http.StatusAccepted, false, func(c *gin.Context, robot device.Robot, b speech) (any, error) {
		return a.sendSpeech(c.Request.Context(), robot.ID, b)
	}))
	r.POST("/ask", robotBodyHandler(a, http.StatusAccepted, false, func(c *gin.Context, robot device.Robot, b speech) (any, error) {
		return a.ask(c.Request.Context(), robot.ID, b)
	}))
	r.POST("/leave", a.robotHandler(http.StatusAccepted, func(_ *gin.Context, robot device.Robot) (any, error) {
		return gin.H{"ok": true}, a.leave(robot, time.Now())
	}))
	r.POST("/alert", robotBodyHandler(a, http.StatusAccepted, false, func(c *gin.Context, robot device.Robot, b alert) (any, error) {
		return a.showAlert(c.Request.Context(), robot.ID, b)
	}))
	r.POST("/gesture", robotBodyHandler(a, http.StatusAccepted, false, func(_ *gin.Context, robot device.Robot, g gesture) (any, error) {
		return a.makeGesture(robot, g)
	}))
	r.POST("/music", robotBodyHandler(a, http.StatusAccepted, true, func(c *gin.Context, robot device.Robot, b musicChoice) (any, error) {
		return gin.H{"ok": true}, a.o.Talk.PlayMusic(c.Request.Context(), robot.ID, b.Name)
	}))
	r.DELETE("/music", a.robotActionHandler(func(ctx context.Context, id device.ID) error { return a.o.Talk.StopMusic(ctx, id) }))
	r.POST("/identify", a.robotHandler(http.StatusAccepted, func(c *gin.Context, robot device.Robot) (any, error) {
		return a.identify(c.Request.Context(), robot)
	}))
	r.GET("/tools", a.robotHandler(http.StatusOK, func(_ *gin.Context, robot device.Robot) (any, error) { return a.tools(robot.ID), nil }))
	r.POST("/tools/:name", robotBodyHandler(a, http.StatusOK, true, func(c *gin.Context, robot device.Robot, b call) (any, error) {
		return a.callTool(c.Request.Context(), robot.ID, c.Param("name"), b)
	}))
	r.GET("/picture", a.withRobot(func(c *gin.Context, robot device.Robot) error {
		p, err := a.picture(robot.ID)
		if err == nil {
			noStore(c) // the next picture has the same URL
			c.Data(http.StatusOK, p.Type, p.Data)
		}
		return err
	}))
	r.GET("/record", a.withRobot(func(c *gin.Context, robot device.Robot) error {
		err := httpserver.Lines(c.Request.Context(), c.Writer, func(ctx context.Context, out func(string) error) error {
			return a.o.Talk.Record(ctx, robot.ID, out)
		})
		if streamEnded(err) {
			return nil
		}
		return err
	}))
}

// withRobot returns a handler that calls work with the robot that the path names.
func (a *API) withRobot(work func(*gin.Context, device.Robot) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		id, err := a.o.Robots.Resolve(c.Param("id"))
		var robot device.Robot
		if err == nil {
			robot, err = a.o.Robots.Get(id)
		}
		if err == nil {
			err = work(c, robot)
		}
		// Errors after the client has disconnected are not faults.
		if err != nil && c.Request.Context().Err() == nil {
			_ = c.Error(asFault(err))
		}
	}
}

// robotHandler returns a handler that calls work with the robot that the path names, and responds with JSON.
func (a *API) robotHandler(status int, work func(*gin.Context, device.Robot) (any, error)) gin.HandlerFunc {
	return a.withRobot(func(c *gin.Context, robot device.Robot) error {
		body, err := work(c, robot)
		if err == nil {
			c.JSON(status, body)
		}
		return err
	})
}

// robotBodyHandler is like robotHandler, and also decodes the JSON body.
func robotBodyHandler[T any](a *API, status int, mayBeEmpty bool, work func(*gin.Context, device.Robot, T) (any, error)) gin.HandlerFunc {
	return a.robotHandler(status, func(c *gin.Context, robot device.Robot) (any, error) {
		body, err := decodeBody[T](c, mayBeEmpty)
		if err != nil {
			return nil, err
		}
		return work(c, robot, body)
	})
}

// robotActionHandler is like robotHandler, for an action without a result.
func (a *API) robotActionHandler(do func(context.Context, device.ID) error) gin.HandlerFunc {
	return a.robotHandler(http.StatusAccepted, func(c *gin.Context, robot device.Robot) (any, error) {
		return gin.H{"ok": true}, do(c.Request.Context(), robot.ID)
	})
}

// jsonHandler returns a handler that responds with the result of work as JSON, or with its error.
func jsonHandler(status int, work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := work(c)
		if err != nil {
			_ = c.Error(asFault(err))
			return
		}
		c.JSON(status, body)
	}
}

// getHandler is like jsonHandler, for a request without parameters.
func getHandler(work func() (any, error)) gin.HandlerFunc {
	return jsonHandler(http.StatusOK, func(*gin.Context) (any, error) { return work() })
}

// actionHandler is like jsonHandler, for an action without a result.
func actionHandler(status int, work func(*gin.Context) error) gin.HandlerFunc {
	return jsonHandler(status, func(c *gin.Context) (any, error) { return gin.H{"ok": true}, work(c) })
}

// bodyHandler is like jsonHandler, and also decodes the JSON body.
func bodyHandler[T any](status int, work func(*gin.Context, T) (any, error)) gin.HandlerFunc {
	return jsonHandler(status, func(c *gin.Context) (any, error) {
		decoded, err := decodeBody[T](c, false)
		if err != nil {
			return nil, err
		}
		return work(c, decoded)
	})
}

// rawBodyHandler is like jsonHandler, and also reads the body, which may be empty.
func rawBodyHandler(status int, work func(c *gin.Context, body []byte) (any, error)) gin.HandlerFunc {
	return jsonHandler(status, func(c *gin.Context) (any, error) {
		body, err := httpserver.Body(c.Request)
		if err != nil {
			return nil, err
		}
		return work(c, body)
	})
}

// latestHandler returns a handler that responds with the latest entries. The query parameter contains their number,
// which is 50 by default.
func latestHandler(parameter string, entries func(n int) any) gin.HandlerFunc {
	return jsonHandler(http.StatusOK, func(c *gin.Context) (any, error) {
		n, err := strconv.Atoi(c.DefaultQuery(parameter, "50"))
		if err != nil || n < 1 || n > 1000 {
			return nil, &httpserver.Fault{Word: "bad_limit", Sentence: parameter + " is a number from 1 to 1000", HTTP: http.StatusBadRequest}
		}
		return entries(n), nil
	})
}

// noStore sets headers that prevent browsers from storing the response, and from guessing its media type.
func noStore(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
}

// decodeBody decodes the JSON body of a request.
func decodeBody[T any](c *gin.Context, mayBeEmpty bool) (body T, err error) {
	if err = c.ShouldBindJSON(&body); err != nil && !(mayBeEmpty && errors.Is(err, io.EOF)) {
		return body, badBodyError(err)
	}
	return body, nil
}

// badBodyError returns the error for a body that cannot be decoded.
func badBodyError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return httpserver.BadBody("the body is not the expected JSON object: " + err.Error())
}

// asFault adds an error code and an HTTP status to the errors of other packages.
func asFault(err error) error {
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
		{Err: agent.ErrNoEntry, Word: "unknown_memory", HTTP: http.StatusNotFound},
		{Err: ErrNoEngine, Word: "unknown_engine", HTTP: http.StatusNotFound},
		{Err: agent.ErrText, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrEntry, Word: "bad_memory", HTTP: http.StatusBadRequest},
		{Err: notice.ErrNotFound, Word: "unknown_notification", HTTP: http.StatusNotFound},
		{Err: agent.ErrTimer, Word: "bad_timer", HTTP: http.StatusBadRequest},
		{Err: agent.ErrTooManyTimers, Word: "too_many_timers", HTTP: http.StatusConflict},
		{Err: notice.ErrOnRobot, Word: "timer_on_robot", HTTP: http.StatusConflict},
		{Err: notice.ErrInvalid, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrNoQuestion, Word: "unknown_permission", HTTP: http.StatusNotFound},
	})
}
