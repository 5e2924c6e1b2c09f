package ota_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// flash is what a robot stores from a reply.
type flash struct {
	url, token string
	version    int
	code       string
	clock      time.Time // local time, stored as if it were UTC
}

// readReply parses a reply as the firmware does. It returns an error if the firmware would abort, ignore a part
// of the reply or choose MQTT. The firmware ignores a value of another type than it expects, so such a value is
// an error too.
func readReply(text []byte) (flash, error) {
	var keys struct{ WebSocket map[string]any }
	var r struct {
		MQTT      json.RawMessage
		WebSocket *struct {
			URL, Token *string
			Version    int
		}
		Activation *struct{ Code, Challenge, Message string }
		ServerTime struct {
			Timestamp int64
			Zone      *int `json:"timezone_offset"`
		} `json:"server_time"`
		Firmware *struct{ Version, URL *string }
	}
	if err := errors.Join(json.Unmarshal(text, &keys), json.Unmarshal(text, &r)); err != nil {
		return flash{}, err
	}
	for k, v := range keys.WebSocket { // limits of NVS: 15 characters for a key, 4000 bytes for a string with its closing zero
		if s, _ := v.(string); len(k) > 15 || len(s) >= 4000 {
			return flash{}, fmt.Errorf("websocket.%s aborts the firmware at every boot", k)
		}
	}
	zone := r.ServerTime.Zone
	switch {
	case r.MQTT != nil:
		return flash{}, errors.New("an mqtt section wins over the websocket's")
	case (r.Activation == nil) == (r.WebSocket == nil):
		return flash{}, errors.New("one that waits may keep an empty token, one that does not chooses MQTT")
	case zone == nil || *zone < -14*60 || *zone > 14*60 || r.ServerTime.Timestamp < 1e12:
		return flash{}, errors.New("server_time is no time in milliseconds with a zone in minutes")
	}
	// The robot adds the offset to the time, and stores the sum as if it were UTC.
	f := flash{clock: time.UnixMilli(r.ServerTime.Timestamp + int64(*zone)*60_000).UTC()}
	if a := r.Activation; a != nil {
		if a.Code == "" || a.Challenge == "" || a.Message == "" {
			return flash{}, fmt.Errorf("activation %v: without a challenge it never asks again", a)
		}
		f.code = a.Code
	} else {
		w := r.WebSocket
		if w.URL == nil || w.Token == nil || w.Version < 1 || w.Version > 3 {
			return flash{}, fmt.Errorf("websocket %v: what is left out stays as it was", keys.WebSocket)
		}
		f.url, f.token, f.version = *w.URL, *w.Token, w.Version
		host, path, _ := strings.Cut(strings.TrimPrefix(f.url, "ws://"), "/")
		name, port, _ := strings.Cut(host, ":")
		if !strings.HasPrefix(f.url, "ws://") || name == "" || port == "" || strings.Trim(port, "0123456789") != "" || path != "xiaozhi/v1/" {
			return flash{}, fmt.Errorf("websocket.url %q is misread", f.url)
		}
	}
	if r.Firmware == nil {
		return f, nil // without the section the robot compares no version
	}
	return f, checkVersion(r.Firmware.Version, r.Firmware.URL)
}

// checkVersion checks the version and the URL of a reply. The firmware parses each part of the version with
// std::stoi, which aborts at a part that does not begin with a digit. A reply without a URL must have the
// version 0, so that the robot sees no newer version.
func checkVersion(version, url *string) error {
	if version == nil || url == nil {
		return errors.New("firmware has a version and a URL")
	}
	for part := range strings.SplitSeq(*version, ".") {
		if part == "" || part[0] < '0' || part[0] > '9' {
			return fmt.Errorf("firmware.version %q aborts the firmware at every boot", *version)
		}
	}
	if *url == "" && *version != "0" {
		return fmt.Errorf("firmware %q is offered without a URL", *version)
	}
	return nil
}
