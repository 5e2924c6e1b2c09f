package homeassistant

import (
	"context"
	"errors"
	"strings"
	"time"

	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/plain"
)

// requests carries out requests to the bridge.
type requests struct {
	publisher
	o        *Options
	robots   *robots
	lanes    *lanes
	refusals refusals
}

// onMessage handles a message on a request topic of the bridge.
func (r *requests) onMessage(ctx context.Context, verb string, m connection.Incoming) {
	if verb != "notify" || m.Retained {
		m.Ack() // the client does not wait for an answer later
	}
	if word := strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz_") == "" && len(verb) <= 32; m.Retained || !word {
		r.refusals.log("", time.Now(), "a request over MQTT is ignored: it is retained, or nothing that can be asked", "topic", plain.Clip(m.Topic, 200))
		return
	}
	request, err := command.ParseRequest(verb, m.Payload, r.o.Robots.Find)
	if err != nil {
		r.respond(request, nil, err)
		m.Ack()
		return
	}
	if verb == "devices" { // which nothing delays
		data, err := r.o.DoRequest(ctx, request)
		r.respond(request, data, err)
		return
	}
	lane := device.ID("")
	if verb == "firmware" {
		lane = "firmware" // a download must not delay other requests
	}
	queued := r.lanes.Add(ctx, lane, device.Job{Do: func(ctx context.Context) {
		data, err := r.o.DoRequest(ctx, request)
		r.respond(request, data, err)
		m.Ack()
		if err == nil {
			r.lanes.inHub(ctx, func() { r.robots.reconcile(time.Now()) })
		}
		if verb == "restart" && err == nil {
			r.o.Restart()
		}
	}})
	if !queued {
		r.respond(request, nil, errors.New("too many requests came at once"))
		m.Ack()
	}
}

// respond publishes the response to a request, and logs an error too.
func (r *requests) respond(request command.Request, data any, err error) {
	response := request.Respond(data, err)
	if err != nil {
		r.o.Log.Warn("a request over MQTT failed", "verb", request.Verb, "err", response.Error)
	}
	r.event(r.topics.Bridge("response/"+request.Verb), response)
}
