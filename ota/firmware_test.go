package ota_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// flash is what a reply leaves in a robot.
type flash struct {
	url, token string
	version    int
	code       string
	clock      time.Time // local time, stored as if it were UTC
}

// readReply does with a reply what the firmware does, and returns an error
// where the firmware would abort, ignore something or choose MQTT.
func readReply(text []byte) (flash, error) {
	var reply map[string]any
	if err := json.Unmarshal(text, &reply); err != nil {
		return flash{}, err
	}
	if _, there := reply["mqtt"]; there {
		return flash{}, errors.New("an mqtt section wins over the websocket's")
	}
	f := flash{}
	section, there := reply["websocket"].(map[string]any)
	if _, waits := reply["activation"]; waits == there {
		return flash{}, fmt.Errorf("waiting %v, with a websocket %v: one that waits may keep an empty token, one that does not chooses MQTT", waits,
			there)
	}
	var stored error
	if there {
		stored = f.store(section)
	}
	if err := errors.Join(stored, f.setClock(reply["server_time"]), checkVersion(reply["firmware"])); err != nil {
		return flash{}, err
	}
	if activation, there := reply["activation"].(map[string]any); there {
		code, _ := activation["code"].(string)
		challenge, _ := activation["challenge"].(string)
		message, _ := activation["message"].(string)
		if code == "" || challenge == "" || message == "" {
			return flash{}, fmt.Errorf("activation %v: without a challenge it never asks again", activation)
		}
		f.code = code
	}
	return f, nil
}

// store copies the section into NVS: keys of 15 characters, strings of 4000
// bytes with their closing zero; more aborts.
func (f *flash) store(section map[string]any) error {
	for k, v := range section {
		if s, _ := v.(string); len(k) > 15 || len(s) >= 4000 {
			return fmt.Errorf("websocket.%s aborts the firmware at every boot", k)
		}
	}
	url, hasURL := section["url"].(string)
	token, hasToken := section["token"].(string)
	version, hasVersion := section["version"].(float64)
	if !hasURL || !hasToken || !hasVersion {
		return fmt.Errorf("websocket %v: what is left out or of another type stays as it was", section)
	}
	if version != math.Trunc(version) || version < 1 || version > 3 {
		return fmt.Errorf("websocket.version %v", version)
	}
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "ws://"), "/")
	name, port, _ := strings.Cut(host, ":")
	if !strings.HasPrefix(url, "ws://") || name == "" || port == "" || strings.Trim(port, "0123456789") != "" || path != "xiaozhi/v1/" {
		return fmt.Errorf("websocket.url %q is misread", url)
	}
	f.url, f.token, f.version = url, token, int(version)
	return nil
}

// setClock adds the offset to the time, as the robot does before it believes
// that this is UTC.
func (f *flash) setClock(section any) error {
	s, _ := section.(map[string]any)
	ms, hasTime := s["timestamp"].(float64)
	minutes, hasOffset := s["timezone_offset"].(float64)
	if !hasTime || !hasOffset || minutes != math.Trunc(minutes) || math.Abs(minutes) > 14*60 || ms < 1e12 {
		return fmt.Errorf("server_time %v is no time in milliseconds with a zone in minutes", section)
	}
	f.clock = time.UnixMilli(int64(ms) + int64(minutes)*60_000).UTC()
	return nil
}

// checkVersion: every part goes through std::stoi, which aborts on a part that
// does not begin with a digit. A version without a URL must be newer than none.
// What is not there is not compared.
func checkVersion(section any) error {
	if section == nil {
		return nil
	}
	s, _ := section.(map[string]any)
	version, hasVersion := s["version"].(string)
	url, hasURL := s["url"].(string)
	if !hasVersion || !hasURL {
		return fmt.Errorf("firmware %v", section)
	}
	for part := range strings.SplitSeq(version, ".") {
		if part == "" || part[0] < '0' || part[0] > '9' {
			return fmt.Errorf("firmware.version %q aborts the firmware at every boot", version)
		}
	}
	if url == "" && version != "0" {
		return fmt.Errorf("firmware %q is offered without a URL", version)
	}
	return nil
}

// TestTheFirmwareRefuses keeps readReply able to fail.
func TestTheFirmwareRefuses(t *testing.T) {
	const (
		head    = `{"server_time":{"timestamp":1785153600000,"timezone_offset":345},"firmware":{"version":"0","url":""},`
		good    = head + `"websocket":{"url":"ws://perch.local:8003/xiaozhi/v1/","token":"","version":1}}`
		waiting = head + `"activation":{"message":"m","code":"1","challenge":"1"}}`
	)
	for _, reply := range []string{good, waiting} {
		if _, err := readReply([]byte(reply)); err != nil {
			t.Fatal(err)
		}
	}
	for _, swap := range [][2]string{
		{`"websocket"`, `"mqtt":{},"websocket"`},
		{`"token":""`, `"a_key_too_long_x":1,"token":""`},
		{`"token":""`, `"token":"` + strings.Repeat("x", 4000) + `"`},
		{`"token":"",`, ``},
		{`"token":""`, `"token":null`},
		{`"version":1`, `"version":"1"`},
		{`"version":1`, `"version":0`},
		{`,"version":1`, ``},
		{`local:8003`, `local`},
		{`local:8003`, `local:`},
		{`ws://`, `http://`},
		{`"version":"0"`, `"version":"v1.2"`},
		{`"version":"0"`, `"version":"1..2"`},
		{`"version":"0"`, `"version":"99.0.0"`},
		{`"version":"0"`, `"version":0`},
		{`345`, `20700`},
		{`345`, `"345"`},
		{`1785153600000`, `1785153600`},
		{`"websocket"`, `"activation":{"message":"m","code":"1","challenge":"1"},"websocket"`},
		{`"websocket"`, `"socket"`},
		{`,"challenge":"1"`, ``},
	} {
		from := good
		if !strings.Contains(from, swap[0]) {
			from = waiting
		}
		bad := strings.Replace(from, swap[0], swap[1], 1)
		if _, err := readReply([]byte(bad)); err == nil || bad == from {
			t.Errorf("the robot takes %s", bad)
		}
	}
}
