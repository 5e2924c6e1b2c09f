package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"perch/cmd/perch/appliancetest"
)

// watch runs skins, a reader of the admin API's events and a subscriber to the broker in goroutines of wg until ctx ends.
func (s *soak) watch(ctx context.Context, wg *sync.WaitGroup) {
	for n := range soakSkins {
		wg.Go(func() { s.again(ctx, fmt.Sprintf("skin %d", n), func() (bool, error) { return s.skin(ctx, n) }) })
	}
	wg.Go(func() { s.again(ctx, "the owner's feed", func() (bool, error) { return s.feed(ctx) }) })
	wg.Go(func() {
		for ctx.Err() == nil {
			s.subscribe(ctx)
			wait(ctx, time.Second) // the broker is stopped
		}
	})
}

// again calls look again and again until ctx ends. look connects and returns an error when the connection has ended or
// could not be opened. That is a failure unless the appliance was killed.
func (s *soak) again(ctx context.Context, who string, look func() (connected bool, err error)) {
	for ctx.Err() == nil {
		connected, err := look()
		lost := time.Now()
		if ctx.Err() != nil {
			return
		}
		wait(ctx, 200*time.Millisecond)
		if !s.troubled(lost.Add(-time.Second), lost, everybody) && s.appliance.running() && ctx.Err() == nil {
			if connected {
				s.fail("%s was hung up on at %s: %v", who, s.at(lost), err)
			} else {
				s.fail("%s could not connect at %s: %v", who, s.at(lost), err)
			}
		}
	}
}

// skin connects as a skin, subscribes to all events, and reads messages until an error occurs.
func (s *soak) skin(ctx context.Context, n int) (connected bool, err error) {
	c, err := dialSocket(ctx, fmt.Sprintf("127.0.2.%d", n+1), s.appliance.listen, "/v1/vtuber/ws", 0, "Authorization", "Bearer "+soakSkinsKey)
	if err != nil {
		return false, err
	}
	defer context.AfterFunc(ctx, c.drop)()
	defer c.drop()
	if err := c.write(websocket.TextMessage,
		[]byte(`{"type":"subscribe","events":["agent_state","tool_status","emotion","notification","notification_changed"],"states":"all"}`)); err != nil {
		return true, err
	}
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			return true, err
		}
		s.count(func(f *figures) { f.frames++ })
	}
}

// feed reads the server-sent events of the admin API.
func (s *soak) feed(ctx context.Context) (connected bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.appliance.local+"/api/v1/events", nil)
	if err != nil {
		return false, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false, errors.New(answer.Status)
	}
	kind := ""
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			s.foreign.event(kind, data)
		}
		named, is := strings.CutPrefix(lines.Text(), "event: ")
		if !is {
			continue
		}
		kind = named
		s.count(func(f *figures) {
			if f.events++; kind == "missed" {
				f.missed++
			}
		})
	}
	return true, errors.New("the stream has ended")
}

// subscribe counts the messages that the broker sends to a subscriber like Home Assistant, until mosquitto_sub ends.
func (s *soak) subscribe(ctx context.Context) {
	runtime.LockOSThread() // see appliancetest.RunChild
	defer runtime.UnlockOSThread()
	host, port, _ := net.SplitHostPort(s.brokerAt)
	c := appliancetest.ChildCommand("mosquitto_sub", "-h", host, "-p", port, "-v", "-t", "perch/#", "-t", "homeassistant/#")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		s.fail("mosquitto_sub: %v", err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Process.Kill() })()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.count(func(f *figures) { f.messages++ })
	}
	_ = c.Process.Kill() // the output has ended, or had a line above 1 MiB
	_ = c.Wait()
}

// mirrored waits until the broker holds a retained Home Assistant discovery message for every robot that the appliance
// must know. It returns an error after soakRecoverWithin. The broker stores nothing, so the appliance must publish the
// messages again after each start of the broker.
func (s *soak) mirrored(ctx context.Context) error {
	host, port, _ := net.SplitHostPort(s.brokerAt)
	var missing []string
	deadline := time.Now().Add(soakRecoverWithin)
	for ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, _ := exec.CommandContext(look, "mosquitto_sub", "-h", host, "-p", port, "-v", "-W", "2", "--retained-only", "-t",
			"homeassistant/device/+/config").Output()
		cancel()
		if strings.Contains(string(out), "homeassistant/device/perch_"+soakInvented) {
			s.foreign.change("a stranger is mirrored to Home Assistant")
		}
		missing = missing[:0]
		for _, r := range s.robots {
			if id := strings.ToLower(strings.ReplaceAll(r.mac, ":", "")); r.kept() &&
				!strings.Contains(string(out), "homeassistant/device/perch_"+id+"/config ") {
				missing = append(missing, r.mac)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s the broker still has no discovery of %s", soakRecoverWithin, strings.Join(missing, ", "))
		}
		wait(ctx, time.Second)
	}
	return ctx.Err()
}

// wait sleeps for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
