package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"perch/language"
)

// perch is a client of the Perch on this machine, over its socket, which only root and its
// group can open.
type perch struct{ http *http.Client }

const perchSocket = "/run/perch/perch.sock"

// perchWithin bounds one request.
const perchWithin = 10 * time.Second

func newPerch(socket string) *perch {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &perch{&http.Client{Timeout: perchWithin, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

func (p *perch) ask(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://perch/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: perch answered %s: %.300s", path, answer.Status, text)
	}
	return json.Unmarshal(text, into)
}

// robots reports whether somebody talks with a robot, and whether any robot is connected.
func (p *perch) robots(ctx context.Context) (talking, near bool, err error) {
	var s struct{ Open, Connected int }
	err = p.ask(ctx, http.MethodGet, "status", nil, &s)
	return s.Open > 0, s.Connected > 0, err
}

// identity returns Perch's name and its language: the first in its configuration, by the tag in
// the form, if it has one.
func (p *perch) identity(ctx context.Context) (name, speaks string, err error) {
	var c struct {
		Keys []struct {
			Key   string
			Value any
		}
	}
	err = p.ask(ctx, http.MethodGet, "config", nil, &c)
	for _, k := range c.Keys {
		if list, is := k.Value.([]any); is && len(list) > 0 {
			k.Value = list[0]
		}
		text, _ := k.Value.(string)
		switch k.Key {
		case "name":
			name = text
		case "language":
			speaks = text
			if tag, known := language.Match(text); known {
				speaks = string(tag)
			}
		}
	}
	return name, speaks, err
}

// fits reports whether Perch would start with a key of its configuration as it is given.
func (p *perch) fits(ctx context.Context, key, value string) (bool, error) {
	var c struct{ Faults []any }
	err := p.ask(ctx, http.MethodPost, "config/check", map[string]any{"set": map[string]any{key: value}}, &c)
	return err == nil && len(c.Faults) == 0, err
}

// set changes a key of the configuration. Perch refuses what it would not start with.
func (p *perch) set(ctx context.Context, key, value string) error {
	return p.ask(ctx, http.MethodPut, "config/"+key, value, &struct{}{})
}

// restart applies changes of the configuration.
func (p *perch) restart(ctx context.Context) error {
	return p.ask(ctx, http.MethodPost, "restart", struct{}{}, &struct{}{})
}

// announce has robots say a sentence, now or in the next minutes. A later one replaces it.
func (p *perch) announce(ctx context.Context, text string) error {
	return p.ask(ctx, http.MethodPost, "notifications", map[string]any{"id": "perch-access-point", "text": text, "urgency": "normal", "speak": true,
		"expires_at": time.Now().Add(10 * time.Minute).Format(time.RFC3339)}, &struct{}{})
}
