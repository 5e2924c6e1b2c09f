package ota_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/ota"
)

// TestDownloads checks which requests with which tickets receive an image, and in which form.
func TestDownloads(t *testing.T) {
	l := newAppliance(t)
	file := simrobot.Image("1.3.0", 5000)
	i := l.add(t, file, board)
	l.add(t, simrobot.Image("1.2.9", 0), board)
	l.runs(t, mac, "1.2.4")
	at := func(when time.Time) offer {
		path := must.Value(l.Install("a0b1c2d3e4f5", i.SHA256, when))(t)
		return offer{URL: path}
	}
	good := at(time.Now())
	if w := l.fetch(good, "Range", "bytes=100-199"); w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), file[100:200]) {
		t.Errorf("a range: %d, %d bytes", w.Code, w.Body.Len())
	}
	if u := l.Update("a0b1c2d3e4f5"); u.Stage != "" {
		t.Errorf("a range is taken for a robot's download: %+v", u)
	}
	if w := l.fetch(good, "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" || w.Body.Len() != len(file) {
		t.Error("it is packed")
	}
	r := httptest.NewRequest(http.MethodHead, good.URL, nil)
	head := httptest.NewRecorder()
	if l.handler.ServeHTTP(head, r); head.Code != http.StatusOK || head.Header().Get("Content-Length") != fmt.Sprint(len(file)) ||
		head.Body.Len() != 0 {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
	other := l.List()[1].SHA256
	ticket := good.URL[strings.Index(good.URL, "?"):]
	for url, code := range map[string]int{
		at(time.Now().Add(-25 * time.Hour)).URL:                               403, // yesterday's
		strings.TrimSuffix(good.URL, ticket):                                  403,
		"/xiaozhi/ota/firmware/" + other + ".bin" + ticket:                    403, // another image's
		strings.Replace(good.URL, "a0b1c2d3e4f5", "a0b1c2d3e4f6", 1):          403, // another robot's
		strings.Replace(good.URL, "?r=a0b1c2d3e4f5.", "?r=a0b1c2d3e4f5.z", 1): 403, // valid for longer
		strings.TrimSuffix(good.URL, ticket) + "?r=...":                       403,
		"/xiaozhi/ota/firmware/" + strings.Repeat("0", 64) + ".bin" + ticket:  403, // of no image
		"/xiaozhi/ota/firmware/..%2f..%2fperch.db" + ticket:                   404, // out of the folder
		"/xiaozhi/ota/firmware/x.bin" + ticket:                                404,
	} {
		if w := l.fetch(offer{URL: url}); w.Code != code {
			t.Errorf("%s: %d %s, want %d", url, w.Code, w.Body, code)
		}
	}
	must.Succeed(t, l.Remove(i.SHA256))
	if w := l.fetch(good); w.Code != http.StatusNotFound {
		t.Errorf("removed: %d", w.Code)
	}
}

// TestADownloadThatStalls checks that a download ends after thirty seconds without progress, and that another
// one may then begin. A robot may have two downloads at a time.
func TestADownloadThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // no robot would take this clock's first day for a time
		l := newAppliance(t)
		i := l.add(t, simrobot.Image("1.3.0", 300_000), board)
		l.runs(t, mac, "1.2.4")
		path := must.Value(l.Install("a0b1c2d3e4f5", i.SHA256, time.Now()))(t)
		ask := piped(t, l.handler)
		one, two, three := ask(path), ask(path), ask(path)
		if one.StatusCode != 200 || two.StatusCode != 200 || three.StatusCode != 503 {
			t.Errorf("answered %d, %d, %d", one.StatusCode, two.StatusCode, three.StatusCode)
		}
		began := time.Now()
		for time.Since(began) < 100*time.Second { // slow, but alive
			if _, err := io.CopyN(io.Discard, two.Body, 10_000); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			time.Sleep(5 * time.Second)
		}
		if n, _ := io.Copy(io.Discard, one.Body); n > 100_000 {
			t.Errorf("the one that stalled has %d bytes more", n)
		}
		if four := ask(path); four.StatusCode != 200 {
			t.Errorf("then %d", four.StatusCode)
		}
	})
}

// piped serves robots over pipes, which transfer only what the robot reads.
func piped(t *testing.T, handler http.Handler) (ask func(path string) *http.Response) {
	return func(path string) *http.Response {
		robot := httpservertest.Serve(t, handler)
		fmt.Fprintf(robot, "GET %s HTTP/1.1\r\nHost: perch.local:8003\r\n\r\n", path)
		return must.Value(http.ReadResponse(bufio.NewReader(robot), nil))(t)
	}
}

func TestThirtyThirdDownloadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // no robot would take this clock's first day for a time
		l := newAppliance(t)
		l.add(t, simrobot.Image("1.3.0", 300_000), board)
		path := func(n int) string {
			id := device.ID(fmt.Sprintf("a0b1c2d3e4%02x", n))
			l.runs(t, id.MAC(), "1.2.4")
			return must.Value(l.Install(id, "", time.Now()))(t)
		}
		ask := piped(t, l.handler)
		for n := range 32 {
			if a := ask(path(n)); a.StatusCode != 200 {
				t.Fatalf("robot %d: %d", n, a.StatusCode)
			}
		}
		began := time.Now()
		if a := ask(path(32)); a.StatusCode != 503 || time.Since(began) != 20*time.Second {
			t.Errorf("answered %d after %v", a.StatusCode, time.Since(began))
		}
		if a := ask(path(33)); a.StatusCode != 200 || time.Since(began) > 31*time.Second {
			t.Errorf("when the others stall it is answered %d after %v", a.StatusCode, time.Since(began))
		}
	})
}

// TestThirtyRobotsAtOnce checks that thirty robots can download the same image at the same time.
func TestThirtyRobotsAtOnce(t *testing.T) {
	l := newAppliance(t)
	file := simrobot.Image("1.3.0", 200_000)
	l.rollOut(t, file)
	server := httptest.NewServer(l.handler)
	defer server.Close()
	done := make(chan error)
	for n := range 30 {
		robot := fmt.Sprintf("a0:b1:c2:d3:e4:%02x", n)
		l.runs(t, robot, "1.2.4")
		o := l.runs(t, robot, "1.2.4")
		go func() {
			answer, err := server.Client().Get(strings.Replace(o.URL, "http://perch.local:8003", server.URL, 1))
			if err != nil {
				done <- err
				return
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if err == nil && (!bytes.Equal(got, file) || answer.ContentLength != int64(len(file)) || len(answer.TransferEncoding) > 0) {
				err = fmt.Errorf("%s: %d bytes, %v", answer.Status, len(got), answer.TransferEncoding)
			}
			done <- err
		}()
	}
	for range 30 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for id, trial := range l.List()[0].Robots {
		if trial.Stage != ota.Downloaded {
			t.Errorf("%s: %+v", id, trial)
		}
	}
}
