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

// perch is a client of the Perch that runs on this machine. It uses Perch's Unix socket, which
// only root and Perch's group can open.
type perch struct{ http *http.Client }

// perchSocket is the path of Perch's Unix socket.
const perchSocket = "/run/perch/perch.sock"

// requestTimeout is the time limit of a request.
const requestTimeout = 10 * time.Second

// newPerch returns a client that uses the Unix socket at a path.
func newPerch(socket string) *perch {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &perch{&http.Client{Timeout: requestTimeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// call sends a request with a JSON body, and decodes the JSON response into result. A response with a
// status from 300 on is an error.
func (p *perch) call(ctx context.Context, method, path string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://perch/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s: perch responded with %s: %.300s", path, response.Status, text)
	}
	return json.Unmarshal(text, result)
}

// robots reports whether a conversation with a robot is under way, and whether a robot is
// connected.
func (p *perch) robots(ctx context.Context) (talking, connected bool, err error) {
	var s struct{ Open, Connected int }
	err = p.call(ctx, http.MethodGet, "status", nil, &s)
	return s.Open > 0, s.Connected > 0, err
}

// identity returns Perch's name and Perch's first configured language. If the form offers
// the language, lang is its language.Tag, such as de for de-AT.
func (p *perch) identity(ctx context.Context) (name, lang string, err error) {
	var c struct {
		Keys []struct {
			Key   string
			Value any
		}
	}
	err = p.call(ctx, http.MethodGet, "config", nil, &c)
	for _, k := range c.Keys {
		if list, ok := k.Value.([]any); ok && len(list) > 0 {
			k.Value = list[0]
		}
		text, _ := k.Value.(string)
		switch k.Key {
		case "name":
			name = text
		case "language":
			lang = text
			if tag, ok := language.Match(text); ok {
				lang = string(tag)
			}
		}
	}
	return name, lang, err
}

// accepts reports whether Perch accepts a value for a key of its configuration. It changes
// nothing.
func (p *perch) accepts(ctx context.Context, key, value string) (bool, error) {
	var c struct{ Faults []any }
	err := p.call(ctx, http.MethodPost, "config/check", map[string]any{"set": map[string]any{key: value}}, &c)
	return err == nil && len(c.Faults) == 0, err
}

// set sets a key of Perch's configuration. Perch refuses invalid values.
func (p *perch) set(ctx context.Context, key, value string) error {
	return p.call(ctx, http.MethodPut, "config/"+key, value, &struct{}{})
}

// restart restarts Perch, which applies changes of its configuration.
func (p *perch) restart(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "restart", struct{}{}, &struct{}{})
}

// announce makes the robots say a sentence. If none can be reached, the next robot that connects within ten minutes
// says it. The sentence replaces an
// earlier announcement.
func (p *perch) announce(ctx context.Context, text string) error {
	return p.call(ctx, http.MethodPost, "notifications", map[string]any{"id": "perch-access-point", "text": text, "urgency": "normal", "speak": true,
		"expires_at": time.Now().Add(10 * time.Minute).Format(time.RFC3339)}, &struct{}{})
}
