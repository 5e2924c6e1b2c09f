package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"perch/limit"
	"perch/plain"
)

// portal is a client of the configuration page of a robot. In configuration mode a robot opens a
// Wi-Fi network, and serves this page to machines that join the network.
type portal struct {
	url    *url.URL
	client *http.Client
}

const (
	// portalAddress is the page's address in the network that a robot opens.
	portalAddress = "http://192.168.4.1"
	// portalTimeout bounds a request. A robot tries to join a network for ten seconds before
	// it responds.
	portalTimeout = 30 * time.Second
	// pageTimeout bounds the wait until the page can be reached.
	pageTimeout = 10 * time.Second
	// maxForm is the maximum size of a form in bytes. The firmware sets this limit.
	maxForm = 1024
)

// openPortal returns a client of a robot's page. The client uses no proxy, because a proxy could
// not reach a robot's network. It follows no redirects: a robot sends none, so a redirect comes
// from the sign-in page of some other Wi-Fi network.
func openPortal(address *url.URL) *portal {
	return &portal{url: address, client: &http.Client{
		Timeout:       portalTimeout,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errNoPage is wrapped by the error of call if the robot has no such path, or does not accept the
// method there.
var errNoPage = errors.New("the robot's page has no such address")

// call sends a request, with body as JSON unless body is nil, and decodes the JSON response into v.
func (p *portal) call(ctx context.Context, method, path string, body, v any) error {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // cannot fail: the fields are strings
	}
	if len(text) > maxForm {
		return fmt.Errorf("the form has %d bytes; a robot accepts %d", len(text), maxForm)
	}
	request, err := http.NewRequestWithContext(ctx, method, p.url.JoinPath(path).String(), bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("send a request to the robot: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("the robot's page does not respond: %w", err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(response.Body, limit.Body)); err != nil {
		return fmt.Errorf("read the robot's response: %w", err)
	}
	switch {
	case response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %s", errNoPage, path)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the robot responded with %s: %s", plain.Line(response.Status), plain.Line(string(text[:min(len(text), 200)])))
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return nil
}

// outcome is the body of the response to a submitted form. The HTTP status is 200 even after
// a failure.
type outcome struct {
	Success *bool  `json:"success"` // nil if the response was not sent by a robot
	Error   string `json:"error"`   // reason for a failure
}

// submit submits a form. The returned outcome may be a failure. submit returns an error only if the
// robot sends no valid outcome; otherwise Success is not nil.
func (p *portal) submit(ctx context.Context, path string, form any) (outcome, error) {
	var o outcome
	err := p.call(ctx, http.MethodPost, path, form, &o)
	if err == nil && o.Success == nil {
		err = fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return o, err
}

// ota returns the robot's bootstrap URL, or "" for the firmware's default.
func (p *portal) ota(ctx context.Context) (string, error) {
	var c struct {
		OTA   string   `json:"ota_url"`
		Power *float64 `json:"max_tx_power"`
	}
	err := p.call(ctx, http.MethodGet, "/advanced/config", nil, &c)
	if err == nil && c.Power == nil { // every robot reports its power
		err = fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return c.OTA, err
}

// waitForPage calls ota until the robot can be reached, and returns the result of ota. After
// pageTimeout it returns an error.
func (p *portal) waitForPage(ctx context.Context) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	for {
		current, err := p.ota(waiting)
		if _, unreachable := errors.AsType[*url.Error](err); !unreachable {
			return current, err
		}
		select {
		case <-waiting.Done():
			return "", fmt.Errorf("%w; is this machine in the robot's network, Xiaozhi-XXXX?", err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// setOTA stores a bootstrap URL in the robot. It reads the URL back, because the firmware reports
// success even if it has not stored the URL.
func (p *portal) setOTA(ctx context.Context, address string) error {
	o, err := p.submit(ctx, "/advanced/submit", map[string]string{"ota_url": address})
	if err == nil && !*o.Success {
		err = fmt.Errorf("the robot rejected the address: %s", plain.Line(o.Error))
	}
	if err != nil {
		return err
	}
	current, err := p.ota(ctx)
	if err == nil && current != address {
		err = fmt.Errorf("the robot was given %s, but has stored %q", address, plain.Line(current))
	}
	return err
}

// join makes the robot join a Wi-Fi network and store its name and password.
func (p *portal) join(ctx context.Context, ssid, password string) error {
	o, err := p.submit(ctx, "/submit", map[string]string{"ssid": ssid, "password": password})
	if err == nil && !*o.Success {
		err = fmt.Errorf("the robot could not join %q; is this a 2.4 GHz network, and is the password right? (error of the robot: %s)", ssid,
			plain.Line(o.Error))
	}
	return err
}

// savedNetworks returns the number of networks that the robot has stored, or -1 if unknown.
func (p *portal) savedNetworks(ctx context.Context) int {
	var list []json.RawMessage
	if p.call(ctx, http.MethodGet, "/saved/list", nil, &list) != nil {
		return -1
	}
	return len(list)
}

// leave makes the robot end configuration mode. Older firmware uses another path for this.
func (p *portal) leave(ctx context.Context) error {
	_, err := p.submit(ctx, "/exit", struct{}{})
	if errors.Is(err, errNoPage) {
		_, err = p.submit(ctx, "/reboot", struct{}{})
	}
	return err
}
