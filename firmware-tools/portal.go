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

// portal is the page of a robot in configuration mode.
type portal struct {
	url    *url.URL
	client *http.Client
}

const (
	// portalAddress is the page's address, in the network that a robot opens.
	portalAddress = "http://192.168.4.1"
	// portalWithin is how long a robot may take: it tries a network for ten
	// seconds before it answers.
	portalWithin = 30 * time.Second
	// portalAppears bounds the wait for the page after its network was joined.
	portalAppears = 10 * time.Second
	// mostForm is a robot's limit for a form, in bytes.
	mostForm = 1024
)

// openPortal returns a client of a robot's page. It uses no proxy, which could not reach a
// robot's network, and follows no redirect, which would come from another captive portal.
func openPortal(address *url.URL) *portal {
	return &portal{url: address, client: &http.Client{
		Timeout:       portalWithin,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errNoPage is wrapped by the errors of ask if the page has no such address.
var errNoPage = errors.New("the robot's page has no such address")

// ask sends a request, and reads its JSON answer into v.
func (p *portal) ask(ctx context.Context, method, path string, body, v any) error {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // texts
	}
	if len(text) > mostForm {
		return fmt.Errorf("the form has %d bytes; a robot takes %d", len(text), mostForm)
	}
	request, err := http.NewRequestWithContext(ctx, method, p.url.JoinPath(path).String(), bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("ask the robot: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("the robot's page does not answer: %w", err)
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(answer.Body, limit.Body)); err != nil {
		return fmt.Errorf("read the robot's answer: %w", err)
	}
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %s", errNoPage, path)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the robot answered %s: %s", plain.Line(answer.Status), plain.Line(string(text[:min(len(text), 200)])))
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return nil
}

// outcome is the answer to a form, whose status is always 200.
type outcome struct {
	Success *bool  `json:"success"`
	Error   string `json:"error"`
}

func (p *portal) submit(ctx context.Context, path string, form any) (outcome, error) {
	var o outcome
	err := p.ask(ctx, http.MethodPost, path, form, &o)
	if err == nil && o.Success == nil {
		err = fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return o, err
}

// ota returns the robot's bootstrap URL; "" is the firmware's default.
func (p *portal) ota(ctx context.Context) (string, error) {
	var c struct {
		OTA   string   `json:"ota_url"`
		Power *float64 `json:"max_tx_power"`
	}
	err := p.ask(ctx, http.MethodGet, "/advanced/config", nil, &c)
	if err == nil && c.Power == nil { // every portal has it
		err = fmt.Errorf("the server at %s is not a robot in configuration mode", p.url)
	}
	return c.OTA, err
}

// waitForPage calls ota until the page has appeared.
func (p *portal) waitForPage(ctx context.Context) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, portalAppears)
	defer cancel()
	for {
		current, err := p.ota(waiting)
		if _, unreached := errors.AsType[*url.Error](err); !unreached {
			return current, err
		}
		select {
		case <-waiting.Done():
			return "", fmt.Errorf("%w; is this machine in the robot's network, Xiaozhi-XXXX?", err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// setOTA stores a bootstrap URL, and reads it back: the page reports success in any case.
func (p *portal) setOTA(ctx context.Context, address string) error {
	o, err := p.submit(ctx, "/advanced/submit", map[string]string{"ota_url": address})
	if err == nil && !*o.Success {
		err = fmt.Errorf("the robot did not take the address: %s", plain.Line(o.Error))
	}
	if err != nil {
		return err
	}
	current, err := p.ota(ctx)
	if err == nil && current != address {
		err = fmt.Errorf("the robot was given %s, but holds %q", address, plain.Line(current))
	}
	return err
}

// join makes the robot try a network and store it.
func (p *portal) join(ctx context.Context, ssid, password string) error {
	o, err := p.submit(ctx, "/submit", map[string]string{"ssid": ssid, "password": password})
	if err == nil && !*o.Success {
		err = fmt.Errorf("the robot could not join %q; it knows 2.4 GHz only, and the password must be right (its error: %s)", ssid,
			plain.Line(o.Error))
	}
	return err
}

// savedNetworks returns how many networks the robot knows; -1 if it does not report it.
func (p *portal) savedNetworks(ctx context.Context) int {
	var list []json.RawMessage
	if p.ask(ctx, http.MethodGet, "/saved/list", nil, &list) != nil {
		return -1
	}
	return len(list)
}

// leave ends configuration mode. Older pages have another address for it.
func (p *portal) leave(ctx context.Context) error {
	_, err := p.submit(ctx, "/exit", struct{}{})
	if errors.Is(err, errNoPage) {
		_, err = p.submit(ctx, "/reboot", struct{}{})
	}
	return err
}
