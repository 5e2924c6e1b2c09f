package ota_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"perch/device"
	"perch/ota"
	"perch/store/storetest"
)

// FuzzCheckIn sends arbitrary check-ins. The response must be an error with a sentence, or a reply that the
// firmware can parse.
func FuzzCheckIn(f *testing.F) {
	for _, body := range []string{whole, strings.Replace(whole, "home", `Bob"s`, 1), "", "null", `{"mac_address":"02:00:00:00:00:01"}`} {
		f.Add([]byte(body), "perch.local:8003", "a0:b1:c2:d3:e4:f5", "uuid", "m5stack-stack-chan/1.2.4", "en-US", "", true)
		f.Add([]byte(body), "perch", "", "", "/", "", "device-id=a0-b1-c2-d3-e4-f5&client-id=page", false)
	}
	f.Add([]byte("{}"), "[::1]:80", "A0-B1-C2-D3-E4-F5", "\xff", "\xff/\xfe", "\x00", "device-id=%zz&;client-id", true)
	f.Add([]byte("{}"), "a\"b\\:080", "a0b1c2d3e4f5", strings.Repeat("x", 300), "a/b/c", "zz", "client-id=%ff", false)
	f.Add([]byte{}, "perch:8003", "", "", "Mozilla/5.0 (X11; Linux x86_64)", "de", "device-id=A0%3AB1%3AC2%3AD3%3AE4%3AF5", true)
	f.Fuzz(func(t *testing.T, body []byte, host, id, client, agent, language, query string, open bool) {
		adoption := device.AdoptCode
		if open {
			adoption = device.AdoptOpen
		}
		robots := device.NewRegistry(device.Key("key"), adoption, &storetest.Table[device.Robot]{})
		service := ota.New(ota.Options{Robots: robots, Bus: deaf{}, Zone: time.UTC, Framing: 2, Log: slog.New(slog.DiscardHandler)})
		r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", bytes.NewReader(body))
		r.Host, r.URL.RawQuery = host, query
		r.Header = http.Header{"Device-Id": {id}, "Client-Id": {client}, "User-Agent": {agent}, "Accept-Language": {language}}
		w := httptest.NewRecorder()
		serve(service).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			if w.Code < 400 || w.Code > 499 || !strings.HasPrefix(w.Body.String(), `{"error":{"code":"`) || w.Body.Len() > 1000 {
				t.Fatalf("answered %d %s", w.Code, w.Body)
			}
			return
		}
		got, err := readReply(w.Body.Bytes())
		if err != nil {
			t.Fatalf("the robot would not like %s: %v", w.Body, err)
		}
		if (got.token != "") != open || (got.code != "") == open {
			t.Fatalf("open adoption %t: %+v", open, got)
		}
		for _, robot := range robots.List() {
			if len(robot.Board) > 100 || len(robot.Firmware) > 100 || len(robot.Language) > 100 ||
				!utf8.ValidString(robot.Board+robot.Firmware+robot.Language+robot.Client.ID+robot.BaseURL) {
				t.Fatalf("remembered is %+v", robot)
			}
		}
	})
}
