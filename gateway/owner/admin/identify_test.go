package admin_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
)

// stackChan returns the tools of a Stack-chan for its head and lights.
func stackChan() []device.Tool {
	number := func(least, most int) device.Argument {
		return device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
	}
	return []device.Tool{
		{Name: "self.robot.get_head_angles"},
		{Name: "self.robot.set_head_angles", Schema: device.Schema{Properties: map[string]device.Argument{
			"yaw": number(-9999, 128), "pitch": number(-9999, 90), "speed": number(100, 1000)}}},
		{Name: "self.robot.set_led_color", Schema: device.Schema{Properties: map[string]device.Argument{
			"red": number(0, 168), "green": number(0, 168), "blue": number(0, 168)}}},
	}
}

const (
	identifyA = "/api/v1/devices/" + string(robotA) + "/identify"
	bright    = `call a0b1c2d3e4f5 self.robot.set_led_color {"blue":168,"green":168,"red":168}`
	dark      = `call a0b1c2d3e4f5 self.robot.set_led_color {"blue":0,"green":0,"red":0}`
	down      = `call a0b1c2d3e4f5 self.robot.set_head_angles {"pitch":45,"speed":400}`
	up        = `call a0b1c2d3e4f5 self.robot.set_head_angles {"pitch":30,"speed":400}`
)

// TestIdentify checks that identify uses the tools that a robot has, and finally turns the head back and the lights off.
func TestIdentify(t *testing.T) {
	angles := "call a0b1c2d3e4f5 self.robot.get_head_angles {}"
	shown := "alert a0b1c2d3e4f5 Perch here happy"
	all := []string{shown, "say a0b1c2d3e4f5 😊 here", angles}
	for range 3 {
		all = append(all, bright, down, dark, up)
	}
	all = append(all, dark, up)
	lights := []string{shown, bright, dark, bright, dark, bright, dark, dark}
	for _, c := range []struct {
		name   string
		tools  []device.Tool
		talks  bool
		queued bool
		asked  []string
		answer string
	}{
		{"a Stack-chan that talks", stackChan(), true, false, all, `{"ok":true,"queued":false}`},
		{"one that is only connected", stackChan()[2:], false, false, lights, `{"ok":true,"queued":false}`},
		{"a head that does not tell where it is", stackChan()[1:2], false, false, []string{shown}, `{"ok":true,"queued":false}`},
		{"a box without a body", nil, false, false, []string{shown}, `{"ok":true,"queued":false}`},
		{"one that sleeps", stackChan(), false, true, []string{shown}, `{"ok":true,"queued":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newAppliance(t)
				h.adopts(t, robotA, "one")
				h.talk.tools, h.talk.queued, h.talk.result.Text = c.tools, c.queued, `{"yaw":-20,"pitch":30}`
				if c.talks {
					h.bus.Publish(robotA, "s1", event.RobotOnline{Framing: 1})
					synctest.Wait()
				}
				began := time.Now()
				h.wants(t, http.MethodPost, identifyA, "", http.StatusAccepted, "="+c.answer)
				if !slices.Equal(h.talk.asked, c.asked) {
					t.Errorf("the robot is asked\n%s\nwant\n%s", strings.Join(h.talk.asked, "\n"), strings.Join(c.asked, "\n"))
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestIdentifyIsCutShort checks that the lights are turned off if the client disconnects, that a second request
// meanwhile does not blink too, and that a robot that does not respond is given up within 20 seconds.
func TestIdentifyIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		h.adopts(t, robotA, "one")
		h.talk.tools, h.talk.result.Text = stackChan()[2:], `{"pitch":30}`
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, identifyA, nil)
			if err != nil {
				panic(err)
			}
			h.engine.ServeHTTP(silent{}, r)
		}()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		h.wants(t, http.MethodPost, identifyA, "", http.StatusAccepted, `={"ok":true,"queued":false}`)
		cancel()
		<-done
		if n := len(h.talk.asked); n != 4 || h.talk.asked[n-1] != dark {
			t.Errorf("the robot is asked %q", h.talk.asked)
		}
		h.talk.call = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		h.ask(http.MethodPost, identifyA, "")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("a robot that hangs holds it up for %s", took)
		}
	})
}

// silent is an http.ResponseWriter that discards the response.
type silent struct{}

func (silent) Header() http.Header         { return http.Header{} }
func (silent) Write(b []byte) (int, error) { return len(b), nil }
func (silent) WriteHeader(int)             {}
