package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/firmware-tools/simrobot"
)

// powerCuts is how often the power goes where PERCH_KILLS does not say.
const powerCuts = 100

const lastingKey = skinsTestKey // of all doors

// outage is an appliance that runs as a program on one data directory, and is
// killed again and again while everybody has it write.
type outage struct {
	*process
	t    *testing.T
	data string
}

// begin starts the program.
func (o *outage) begin(env ...string) {
	o.t.Helper()
	o.process = begin(o.t, os.Args[0], o.data, nil, append([]string{
		asProgram + "=1", "PERCH_MQTT_BROKER=none", "PERCH_ADOPTION=ask", "PERCH_MDNS_ENABLED=false",
		"PERCH_BRIDGE_KEY=" + lastingKey, "PERCH_SKINS_KEY=" + lastingKey,
		// Nobody is listened to, and a recognizer takes a second to load.
		"PERCH_SPEECH_RECOGNIZERS_0_KIND=wyoming", "PERCH_SPEECH_RECOGNIZERS_0_URL=tcp://127.0.0.1:9"}, env...)...)
}

// ask sends a request with the key that its path wants.
func (o *outage) ask(ctx context.Context, method, path string, body, into any, header ...string) error {
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/api/perception/") || strings.HasPrefix(path, "/api/voice/") {
		header = append([]string{"Authorization", "Bearer " + lastingKey}, header...)
	}
	return o.process.ask(ctx, method, path, body, into, header...)
}

// checkIn is a robot that boots, as far as it takes to be known. The token is
// empty while it waits for its owner.
func (o *outage) checkIn(ctx context.Context, mac string) (token string, err error) {
	var reply struct{ WebSocket struct{ Token string } }
	err = o.ask(ctx, http.MethodPost, "/xiaozhi/ota/", []byte(`{}`), &reply,
		"Device-Id", mac, "Client-Id", "5e7a1c00-0000-4000-8000-"+strings.ReplaceAll(mac, ":", ""), "User-Agent", "m5stack-stack-chan/2.2.4")
	return reply.WebSocket.Token, err
}

// adopted is a robot that boots, and that its owner has adopted. One that was
// forgotten in between is adopted when it boots once more.
func (o *outage) adopted(ctx context.Context, mac string) error {
	for {
		if _, err := o.checkIn(ctx, mac); err != nil {
			return err
		}
		err := o.ask(ctx, http.MethodPost, "/api/v1/adopt", map[string]string{"robot": mac}, nil)
		if !forgotten(err) {
			return err
		}
	}
}

// forgotten reports whether a robot could not be adopted because it was
// forgotten with all strangers.
func forgotten(err error) bool {
	var refused *errRefused
	return errors.As(err, &refused) && refused.status == http.StatusNotFound
}

// chat has the mind answer, as the robot of that MAC where one is named.
func (o *outage) chat(ctx context.Context, mac, text string) (string, error) {
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	var header []string
	if mac != "" {
		header = []string{"X-Session-Id", "robot:" + mac}
	}
	err := o.ask(ctx, http.MethodPost, "/v1/chat/completions",
		map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}}, &reply, header...)
	if err != nil || len(reply.Choices) == 0 {
		return "", err
	}
	return reply.Choices[0].Message.Content, nil
}

// ledger is what was acknowledged, under names, and the one change that may
// have been cut off: of that either is true.
type ledger struct {
	kept       map[string]string
	name       string // of the change; empty is none
	then       string // what it makes of it; empty is nothing
	acts, cuts int
}

func (l *ledger) begin(name, then string) { l.name, l.then = name, then }

func (l *ledger) done() {
	l.set(l.name, l.then)
	l.name = ""
	l.acts++
}

func (l *ledger) set(name, value string) {
	if l.kept == nil {
		l.kept = map[string]string{}
	}
	if l.kept[name] = value; value == "" {
		delete(l.kept, name)
	}
}

// settle compares what was acknowledged with what is there.
func (l *ledger) settle(there map[string]string) (faults []string) {
	if l.name != "" {
		l.cuts++
		if got := there[l.name]; got == l.then {
			l.set(l.name, l.then)
		}
		l.name = ""
	}
	for _, name := range slices.Sorted(maps.Keys(l.kept)) {
		if there[name] != l.kept[name] {
			faults = append(faults, fmt.Sprintf("%q is %q, and %q was acknowledged", name, there[name], l.kept[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, kept := l.kept[name]; !kept && there[name] != "" {
			faults = append(faults, fmt.Sprintf("%q is %q, which nobody was told", name, there[name]))
		}
	}
	return faults
}

// chore is one way of having the program write.
type chore struct {
	ledger
	name string
	act  func(ctx context.Context, c *chore, r *rand.Rand) error
	// there is what there is now, by what the program says.
	there func(ctx context.Context) (map[string]string, error)
}

// TestPowerCuts kills the program a hundred times while robots and people have
// it write, on one data directory, so that damage would add up. Whatever was
// acknowledged is there each time, nothing is there by halves, and nothing is
// left behind.
func TestPowerCuts(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("PERCH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PERCH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	o := &outage{t: t, data: t.TempDir()}
	chores := []*chore{o.facts(), o.notices(), o.timers(), o.adoption(), o.strangers(), o.firmware()}
	cuts := powerCuts
	if text := os.Getenv("PERCH_KILLS"); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	ends, longest, token := 0, time.Duration(0), ""
	for cut := range cuts {
		began := time.Now()
		var env []string
		if cut%4 > 0 { // to make what robots say takes the processor, which the test does not have for long
			env = []string{"PERCH_SPEECH_SYNTHESIZERS_0_KIND=wyoming", "PERCH_SPEECH_SYNTHESIZERS_0_URL=tcp://127.0.0.1:9"}
		}
		o.begin(env...)
		if r.IntN(5) == 0 { // while it starts
			time.Sleep(time.Duration(r.Int64N(int64(150 * time.Millisecond))))
			o.cut()
			continue
		}
		o.up()
		if token = cmp.Or(token, o.token); o.token != token {
			t.Fatal("the owner's token is another one")
		}
		longest = max(longest, time.Since(began))
		o.inspect(chores, cut)
		if t.Failed() {
			o.cut()
			break
		}
		o.load(chores, r, time.Duration(r.Int64N(int64(200*time.Millisecond))))
		ends++
	}
	o.begin()
	o.up()
	o.inspect(chores, cuts)
	o.stop()
	for _, c := range chores {
		t.Logf("%s: %d acknowledged, %d cut off", c.name, c.acts, c.cuts)
		if c.acts < ends/20 { // a machine that has much else to do acknowledges few
			t.Errorf("%s: only %d were acknowledged", c.name, c.acts)
		}
	}
	t.Logf("the slowest of %d starts took %s", ends, longest)
	if t.Failed() {
		t.Logf("the program's log:\n%s", &o.log)
	}
}

// inspect looks whether all is there.
func (o *outage) inspect(chores []*chore, cut int) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), startWithin)
	defer cancel()
	for _, c := range chores {
		there, err := c.there(ctx)
		if err != nil {
			o.t.Errorf("after %d cuts, %s: %v", cut, c.name, err)
			continue
		}
		for _, fault := range c.settle(there) {
			o.t.Errorf("after %d cuts, %s: %s", cut, c.name, fault)
		}
	}
	for _, path := range []string{"/api/v1/turns", "/api/v1/devices", "/api/perception/state"} {
		var any any
		if err := o.ask(ctx, http.MethodGet, path, nil, &any); err != nil {
			o.t.Errorf("after %d cuts, %s: %v", cut, path, err)
		}
	}
	known := []string{"admin-token", "firmware", "perch.db", "perch.sock", "token-key"}
	entries, err := os.ReadDir(o.data)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			o.t.Errorf("after %d cuts, %s was left behind", cut, e.Name())
		}
	}
}

// load has everybody write until the power goes.
func (o *outage) load(chores []*chore, r *rand.Rand, lasts time.Duration) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	var all sync.WaitGroup
	for _, c := range chores {
		r := rand.New(rand.NewPCG(r.Uint64(), 1))
		all.Go(func() {
			for {
				var refused *errRefused
				switch err := c.act(ctx, c, r); {
				case errors.As(err, &refused):
					o.t.Errorf("%s: %v", c.name, err)
					return
				case err != nil:
					return // the power has gone
				}
			}
		})
	}
	all.Go(func() { o.talks(ctx) })
	all.Go(func() { o.senses(ctx) })
	time.Sleep(lasts)
	o.cut()
	cancel()
	all.Wait()
}

// talks is a robot that opens its channel and is spoken to.
func (o *outage) talks(ctx context.Context) {
	const mac = "A0:B1:C2:00:00:01"
	if o.adopted(ctx, mac) != nil {
		return
	}
	greeted := make(chan struct{}, 1)
	robot, err := simrobot.New(simrobot.Options{OTA: o.ota(), MAC: mac, Stay: true, Observe: func(e simrobot.Observation) {
		if _, is := e.(simrobot.Welcomed); is {
			greeted <- struct{}{}
		}
	}})
	if err != nil {
		o.t.Error(err)
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() { _ = robot.Run(ctx) }) // it loses its channel, which is what this is about
	select {
	case <-greeted:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		if err := o.ask(ctx, http.MethodPost, "/xiaozhi/admin/inject-text", map[string]string{"device_id": mac, "text": "what time is it"},
			nil); err != nil {
			return
		}
	}
}

// senses is a robot that sees somebody all the time.
func (o *outage) senses(ctx context.Context) {
	const mac = "A0:B1:C2:00:00:02"
	if o.adopted(ctx, mac) != nil {
		return
	}
	for ctx.Err() == nil {
		if o.ask(ctx, http.MethodPost, "/api/perception/event", map[string]any{"name": "face_detected", "device_id": mac,
			"data": map[string]int{"x": 1}}, nil) != nil {
			return
		}
	}
}

// facts are remembered and forgotten.
func (o *outage) facts() *chore {
	type entry struct{ ID, Body string }
	all := func(ctx context.Context) (list []entry, err error) {
		err = o.ask(ctx, http.MethodGet, "/api/v1/memory", nil, &list)
		return list, err
	}
	return &chore{name: "facts",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			if len(c.kept) > 20 {
				list, err := all(ctx)
				if err != nil {
					return err
				}
				gone := list[r.IntN(len(list))]
				c.begin(gone.Body, "")
				err = o.ask(ctx, http.MethodDelete, "/api/v1/memory/"+gone.ID, nil, nil)
				if err == nil {
					c.done()
				}
				return err
			}
			fact := fmt.Sprintf("fact %x is true", r.Uint64())
			c.begin(fact, "1")
			err := o.ask(ctx, http.MethodPost, "/api/voice/remember", map[string]string{"fact": fact}, nil)
			if err == nil {
				c.done()
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) {
			list, err := all(ctx)
			counted := map[string]int{}
			for _, e := range list {
				counted[e.Body]++
			}
			there := map[string]string{}
			for body, n := range counted {
				there[body] = strconv.Itoa(n)
			}
			return there, err
		}}
}

// notices are for robots that are not there, and take the place of earlier
// ones.
func (o *outage) notices() *chore {
	return &chore{name: "notifications",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			n := r.IntN(12)
			id, text, robot := fmt.Sprint("n", n), fmt.Sprintf("note %x", r.Uint64()), fmt.Sprintf("A0:B1:C2:00:01:%02d", n)
			if err := o.adopted(ctx, robot); err != nil {
				return err
			}
			c.begin(id, text)
			var accepted struct{ ID string }
			err := o.ask(ctx, http.MethodPost, "/api/v1/notifications", map[string]any{"id": id, "text": text, "robot": robot}, &accepted)
			if err == nil {
				c.done()
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) { return o.open(ctx) }}
}

// open are the notifications that wait, as a screen is shown them.
func (o *outage) open(ctx context.Context) (map[string]string, error) {
	w := watchAt(o.t, o.url, everything)
	defer w.leave()
	if err := w.SendText([]byte(`{"type":"ping"}`)); err != nil {
		return nil, err
	}
	for {
		w.mu.Lock()
		frames := slices.Clone(w.frames)
		w.mu.Unlock()
		there := map[string]string{}
		for _, f := range frames {
			switch f["type"] {
			case "notification":
				there[fmt.Sprint(f["id"])] = fmt.Sprint(f["text"])
			case "pong":
				return there, nil
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// hoursLeft is what is said of a timer of whole hours in its first minutes.
var hoursLeft = regexp.MustCompile(`(\d+) hours?( and 5\d minutes)?`)

// timers are set and cancelled, each in the name of a robot.
func (o *outage) timers() *chore {
	const robots = 3
	mac := func(n int) string { return fmt.Sprintf("A0:B1:C2:00:02:%02d", n) }
	return &chore{name: "timers",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			robot := mac(r.IntN(robots))
			if err := o.adopted(ctx, robot); err != nil {
				return err
			}
			want, hours := "cancel the timer", ""
			if c.kept[robot] == "" {
				hours = strconv.Itoa(2 + r.IntN(18))
				want = "set a timer for " + hours + " hours"
			}
			c.begin(robot, hours)
			answer, err := o.chat(ctx, robot, want)
			if err == nil && !strings.Contains(answer, "starting now") && !strings.Contains(answer, "No timer is set any more") {
				return &errRefused{http.StatusOK, want + ": " + answer}
			}
			if err == nil {
				c.done()
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) {
			there := map[string]string{}
			for n := range robots {
				if err := o.adopted(ctx, mac(n)); err != nil {
					return nil, err
				}
				answer, err := o.chat(ctx, mac(n), "how much time is left on the timer")
				if err != nil {
					return nil, err
				}
				if strings.Contains(answer, "no timer") {
					continue
				}
				// It was set some seconds ago, and says hours and minutes.
				said := hoursLeft.FindStringSubmatch(answer)
				if said == nil {
					return nil, fmt.Errorf("of the timer it says %q", answer)
				}
				hours, _ := strconv.Atoi(said[1])
				if said[2] != "" {
					hours++
				}
				there[mac(n)] = strconv.Itoa(hours)
			}
			return there, nil
		}}
}

// adoption lets robots in and forgets them. A token of before is never good
// again.
func (o *outage) adoption() *chore {
	const robots = 4
	mac := func(n int) string { return fmt.Sprintf("A0:B1:C2:00:03:%02d", n) }
	void := map[string]string{} // tokens of robots that were forgotten
	return &chore{name: "adoption",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			robot := mac(r.IntN(robots))
			token, err := o.checkIn(ctx, robot)
			if err != nil {
				return err
			}
			if c.kept[robot] == "" {
				c.begin(robot, "adopted")
				if err = o.ask(ctx, http.MethodPost, "/api/v1/adopt", map[string]string{"robot": robot}, nil); forgotten(err) {
					c.begin("", "")
					return nil
				}
			} else {
				void[token] = robot
				c.begin(robot, "")
				if err = o.ask(ctx, http.MethodDelete, "/api/v1/devices/"+strings.ReplaceAll(robot, ":", ""), nil, nil); err != nil {
					delete(void, token) // perhaps
				}
			}
			if err == nil {
				c.done()
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct {
				MAC     string
				Adopted bool
			}
			if err := o.ask(ctx, http.MethodGet, "/api/v1/devices", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for n := range robots {
				for _, d := range list {
					if strings.EqualFold(d.MAC, mac(n)) && d.Adopted {
						there[mac(n)] = "adopted"
					}
				}
				token, err := o.checkIn(ctx, mac(n))
				switch {
				case err != nil:
					return nil, err
				case (token != "") != (there[mac(n)] != ""):
					o.t.Errorf("%s is %q, and its token %q", mac(n), there[mac(n)], token)
				case token != "" && void[token] != "":
					o.t.Errorf("%s was given a token that was void", mac(n))
				}
			}
			return there, nil
		}}
}

// strangers come, and are forgotten all at once. Who was forgotten, and has not
// come again, is not there.
func (o *outage) strangers() *chore {
	seen, gone := map[string]bool{}, map[string]bool{}
	return &chore{name: "strangers",
		act: func(ctx context.Context, c *chore, r *rand.Rand) error {
			if r.IntN(4) > 0 {
				mac := fmt.Sprintf("A0:B1:C2:00:04:%02d", r.IntN(20))
				seen[mac] = true
				delete(gone, mac)
				_, err := o.checkIn(ctx, mac)
				return err
			}
			if err := o.ask(ctx, http.MethodDelete, "/api/v1/strangers", nil, nil); err != nil {
				return err
			}
			c.acts++
			for mac := range seen {
				gone[mac] = true
			}
			clear(seen)
			return nil
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct{ MAC string }
			if err := o.ask(ctx, http.MethodGet, "/api/v1/devices", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for _, d := range list {
				if mac := strings.ToUpper(d.MAC); gone[mac] {
					there[mac] = "back"
				}
			}
			return there, nil
		}}
}

// firmware is published, rolled out and removed.
func (o *outage) firmware() *chore {
	images := map[string][]byte{} // by SHA-256
	for n := range 3 {
		image := simrobot.Image(fmt.Sprintf("9.0.%d", n), 32<<10)
		images[hashOf(image)] = image
	}
	names := slices.Sorted(maps.Keys(images))
	return &chore{name: "firmware",
		act: func(ctx context.Context, c *chore, r *rand.Rand) (err error) {
			sha := names[r.IntN(len(names))]
			percent := 1 + r.IntN(100)
			switch {
			case c.kept[sha] == "":
				c.begin(sha, "rolled out to 0")
				err = o.ask(ctx, http.MethodPost, "/api/v1/firmware?board=none", images[sha], nil)
			case percent > 60:
				c.begin(sha, "")
				err = o.ask(ctx, http.MethodDelete, "/api/v1/firmware/"+sha, nil, nil)
			default:
				c.begin(sha, fmt.Sprint("rolled out to ", percent))
				err = o.ask(ctx, http.MethodPost, "/api/v1/firmware/"+sha+"/rollout", map[string]any{"boards": []string{"none"}, "percent": percent},
					nil)
			}
			if err == nil {
				c.done()
			}
			return err
		},
		there: func(ctx context.Context) (map[string]string, error) {
			var list []struct {
				SHA256  string
				Rollout struct{ Percent int }
			}
			if err := o.ask(ctx, http.MethodGet, "/api/v1/firmware", nil, &list); err != nil {
				return nil, err
			}
			there := map[string]string{}
			for _, i := range list {
				there[i.SHA256] = fmt.Sprint("rolled out to ", i.Rollout.Percent)
			}
			return there, o.images(slices.Sorted(maps.Keys(there)))
		}}
}

// images looks at the files of the catalogue: all that are in it are whole, and
// there are no others.
func (o *outage) images(listed []string) error {
	files, err := os.ReadDir(filepath.Join(o.data, "firmware"))
	if err != nil {
		return err
	}
	var there []string
	for _, f := range files {
		if f.Name() == "orphaned" { // what was cut off
			continue
		}
		image, err := os.ReadFile(filepath.Join(o.data, "firmware", f.Name()))
		if err != nil {
			return err
		}
		if f.Name() != hashOf(image)+".bin" {
			return fmt.Errorf("%s is not what it is called", f.Name())
		}
		there = append(there, hashOf(image))
	}
	if !slices.Equal(there, listed) {
		return fmt.Errorf("there are the files %v, and %v are listed", there, listed)
	}
	return nil
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
