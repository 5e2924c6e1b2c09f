package simrobot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"perch/limit"
)

// httpTimeout bounds an HTTP request of the firmware.
const httpTimeout = 30 * time.Second

// newHTTPClient returns a client that behaves like the HTTP client in the firmware.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: httpTimeout,
		// The firmware does not follow redirects: they are failures.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
	}
}

// Boot starts the robot: it rolls back firmware that is not confirmed, and checks in until the robot's
// owner has adopted the robot. With Options.Upgrades the robot installs, before the first check-in, the
// firmware and the assets whose URLs the server has sent by calls of tools. It also installs the
// firmware that a bootstrap offers, and then checks in again.
func (r *Robot) Boot(ctx context.Context) error {
	r.wakeOff, r.lastSession = false, ""
	r.rollBack()
	if url := r.imageURL; url != "" && r.o.Upgrades {
		r.imageURL = ""
		if _, err := r.install(ctx, url); err != nil {
			return err
		}
	}
	if r.flash.AssetsURL != "" && r.o.Upgrades {
		if err := r.fetchAssets(ctx); err != nil {
			return err
		}
	}
	for {
		b, err := r.CheckIn(ctx)
		if err != nil {
			return err
		}
		rebooted := false
		switch {
		case !r.o.Upgrades:
		case b.Upgrade == "": // a check-in without an upgrade confirms the running image
			r.flash.Pending, r.installs = false, 0
			err = r.flash.save()
		default:
			rebooted, err = r.install(ctx, b.Upgrade)
		}
		if err != nil {
			return err
		}
		if rebooted {
			continue
		}
		if b.Code == "" && b.Challenge == "" {
			return nil
		}
		r.o.Observe(AwaitsAdoption{Code: b.Code, Message: b.Message})
		if err := r.activate(ctx, b.Challenge); err != nil {
			return err
		}
	}
}

// CheckIn sends one check-in request (the firmware tries up to ten times), and stores the settings of
// the response in the flash. The error is a Crash if the response would crash a real robot. It wraps
// ErrMQTT or ErrTransport if the robot cannot use the transport that the response selects.
func (r *Robot) CheckIn(ctx context.Context) (Bootstrap, error) {
	if err := checkOTA(r.o.OTA); err != nil {
		return Bootstrap{}, err
	}
	status, text, err := r.post(ctx, r.o.OTA, systemInfo(r.id, r.flash.UUID, r.firmware))
	if err != nil {
		return Bootstrap{}, fmt.Errorf("check in: %w", err)
	}
	if status != http.StatusOK {
		return Bootstrap{}, fmt.Errorf("check in: %s responded with status %d: %.200s", r.o.OTA, status, text)
	}
	b, err := r.readBootstrap(text)
	if err != nil {
		return Bootstrap{}, err
	}
	if err := r.flash.save(); err != nil {
		return Bootstrap{}, err
	}
	r.o.Observe(CheckedIn{OTA: r.o.OTA, Boot: b})
	return b, nil
}

// post sends a POST request with a JSON body and the firmware's headers. It returns the status and the
// body of the response.
func (r *Robot) post(ctx context.Context, url, body string) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Close = true
	req.Header = http.Header{
		"Activation-Version": {"1"}, // the version for chips without a serial number
		"Device-Id":          {r.id.MAC()},
		"Client-Id":          {r.flash.UUID},
		"User-Agent":         {r.firmware.board + "/" + r.firmware.version},
		"Accept-Language":    {language},
		"Content-Type":       {"application/json"},
	}
	response, err := r.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, limit.File))
	return response.StatusCode, bytes.TrimSpace(text), err
}

// checkOTA returns an error for a URL that the firmware cannot use.
func checkOTA(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("the robot has no OTA URL")
	case err != nil:
		return fmt.Errorf("the OTA URL: %w", err)
	case len(text) < 10:
		return fmt.Errorf("the OTA URL %q: the firmware requires at least 10 characters", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the OTA URL %q: the firmware supports http:// and https:// only", text)
	case u.User != nil || strings.Contains(u.Host, "["):
		return fmt.Errorf("the OTA URL %q: the firmware supports neither a user name nor an IPv6 address", text)
	}
	return nil
}

// activate asks the server up to ten times whether the owner has adopted the robot. Without a
// challenge it only waits. activate returns nil even if the robot is not adopted, because the firmware
// then checks in again in both cases.
func (r *Robot) activate(ctx context.Context, challenge string) error {
	url := strings.TrimSuffix(r.o.OTA, "/") + "/activate"
	for range 10 {
		wait := 10 * time.Second
		if challenge != "" { // without a challenge the firmware only waits
			status, _, err := r.post(ctx, url, "{}")
			switch {
			case err != nil && ctx.Err() != nil:
				return ctx.Err()
			case err == nil && status == http.StatusOK:
				return nil
			case err == nil && status == http.StatusAccepted:
				wait = 3 * time.Second
			}
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for a duration, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
