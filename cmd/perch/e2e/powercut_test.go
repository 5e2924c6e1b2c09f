package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent/diary"
	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/store/storetest"
)

// outage runs the program on one data directory, and kills it again and again while clients make it write.
type outage struct {
	*process
	t    *testing.T
	data string
}

// begin starts the program.
func (o *outage) begin(env ...string) {
	o.t.Helper()
	o.process = begin(o.t, perchBinary(o.t), o.data, nil, append([]string{
		"PERCH_MQTT_BROKER=none", "PERCH_ADOPTION=code", "PERCH_MDNS_ENABLED=false",
		"PERCH_BRIDGE_KEY=" + appliancetest.Key, "PERCH_SKINS_KEY=" + appliancetest.Key,
		// No sound is recognized, and the embedded recognizer takes a second to load.
		"PERCH_SPEECH_RECOGNIZERS_0_KIND=wyoming", "PERCH_SPEECH_RECOGNIZERS_0_URL=tcp://127.0.0.1:9"}, env...)...)
}

// ask sends a request with the key that its path requires.
func (o *outage) ask(ctx context.Context, method, path string, body, into any, header ...string) error {
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/api/perception/") || strings.HasPrefix(path, "/api/voice/") {
		header = append([]string{"Authorization", "Bearer " + appliancetest.Key}, header...)
	}
	return o.process.ask(ctx, method, path, body, into, header...)
}

// checkIn sends a robot's check-in. The token is empty if the robot waits to be adopted.
func (o *outage) checkIn(ctx context.Context, mac string) (token string, err error) {
	var reply struct{ WebSocket struct{ Token string } }
	err = o.ask(ctx, http.MethodPost, "/xiaozhi/ota/", []byte(`{}`), &reply,
		"Device-Id", mac, "Client-Id", "5e7a1c00-0000-4000-8000-"+strings.ReplaceAll(mac, ":", ""), "User-Agent", "m5stack-stack-chan/2.2.4")
	return reply.WebSocket.Token, err
}

// adopted checks a robot in and adopts it. If the robot is forgotten in between, adopted tries again.
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

// chat returns the agent's answer to a text, in the conversation of the robot with a MAC address, or in a conversation
// without a robot if mac is empty.
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

// TestPowerCuts kills the program sixty times, or PERCH_KILLS times, while clients make it write into one data
// directory. After each start, everything that was acknowledged is there, nothing is partial, and no temporary file
// remains.
func TestPowerCuts(t *testing.T) {
	if testing.Short() {
		t.Skip("many starts take minutes, in make test-all")
	}
	t.Parallel()
	seed := storetest.Number(t, "PERCH_SEED", rand.Uint64())
	t.Logf("PERCH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	o := &outage{t: t, data: t.TempDir()}
	chores := []*chore{o.facts(), o.settings(), o.timers(), o.adoption(), o.strangers(), o.firmware(), o.rollouts(), o.assets(), o.acknowledgements(),
		o.notices("notifications", "/api/v1/notifications", "n"), o.notices("notifications of skins", "/v1/vtuber/notifications", "s")}
	cuts := int(storetest.Number(t, "PERCH_KILLS", 60))
	ends, longest, token := 0, time.Duration(0), ""
	for cut := range cuts {
		began := time.Now()
		var env []string
		if cut%4 > 0 { // synthesizing phrases takes CPU time, so only every fourth run does it
			env = []string{"PERCH_SPEECH_SYNTHESIZERS_0_KIND=wyoming", "PERCH_SPEECH_SYNTHESIZERS_0_URL=tcp://127.0.0.1:9"}
		}
		o.begin(env...)
		if r.IntN(5) == 0 { // the power fails during the start
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
		if cut%2 > 0 {
			o.alone(chores[cut/2%len(chores)], r)
		} else {
			o.load(chores, r, time.Duration(r.Int64N(int64(200*time.Millisecond))))
		}
		ends++
	}
	o.begin()
	o.up()
	o.inspect(chores, cuts)
	o.stop()
	for _, c := range chores {
		t.Logf("%s: %d acknowledged, %d of them removals, %d cut off", c.name, c.acts, c.removals, c.cuts)
		if c.acts < ends/20 { // a low limit, because a busy machine acknowledges few changes
			t.Errorf("%s: only %d were acknowledged", c.name, c.acts)
		}
	}
	t.Logf("the slowest of %d starts took %s", ends, longest)
	if t.Failed() {
		t.Logf("the program's log:\n%s", &o.log)
	}
}

// TestPowerCutsOnAFullDisk kills the program eight times, or PERCH_KILLS times, while facts are stored on a disk that
// is sometimes full. After each start, the acknowledged facts are there, and the refused ones are not.
func TestPowerCutsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := storetest.SmallDisk(t, "8m")
	o := &outage{t: t, data: filepath.Join(disk, "data")}
	facts := &chore{name: "facts"}
	refused, cuts := 0, int(storetest.Number(t, "PERCH_KILLS", 8))
	there := func() map[string]string {
		var list []struct{ Body string }
		must.Succeed(t, o.ask(t.Context(), http.MethodGet, "/api/v1/memory", nil, &list))
		found := map[string]string{}
		for _, e := range list {
			found[e.Body] = "1"
		}
		return found
	}
	filler, full := "", false
	for cut := range cuts + 1 {
		o.begin()
		o.up()
		for _, fault := range facts.settle(there()) {
			t.Errorf("after %d cuts, %.60s", cut, fault)
		}
		if cut == cuts || t.Failed() {
			break
		}
		switch {
		case !full && cut%3 == 1:
			filler, full = fill(t, disk), true
		case full && cut%3 == 0:
			must.Succeed(t, os.Remove(filler))
			full = false
		}
		for n := range 1 + cut%5 {
			fact := fmt.Sprintf("fact %d of round %d is true. %s", n, cut, strings.Repeat("x", 900))
			err := facts.change(fact, "1", func() error {
				return o.ask(t.Context(), http.MethodPost, "/api/voice/remember", map[string]string{"fact": fact}, nil)
			})
			var no *errRefused
			switch {
			case errors.As(err, &no) && no.status == http.StatusInsufficientStorage && full:
				facts.changing = "" // the refused fact must not appear
				refused++
			case err != nil:
				t.Errorf("in round %d: %v", cut, err)
			}
		}
		o.cut()
	}
	o.stop()
	t.Logf("%d cuts: %d facts acknowledged, %d refused on the full disk", cuts, facts.acts, refused)
	if refused == 0 || facts.acts == 0 {
		t.Error("the disk was never full, or always")
	}
}

// inspect checks that the program has all acknowledged values, that the diary is consistent, and that the data
// directory contains no unknown files.
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
	var kept diary.Report
	if err := o.ask(ctx, http.MethodGet, "/api/v1/diary/verify", nil, &kept); err != nil || !kept.Whole {
		o.t.Errorf("after %d cuts, the diary: %+v, %v", cut, kept, err)
	}
	known := []string{"admin-token", "diary-key", "firmware", "page-sessions", "perch.db", "perch.sock", "settings.yaml", "token-key"}
	entries := must.Value(os.ReadDir(o.data))(o.t)
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			o.t.Errorf("after %d cuts, %s was left behind", cut, e.Name())
		}
	}
}

// load runs all chores and robots at the same time, and cuts the power after the duration lasts.
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
					return // the power was cut
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

// alone runs one chore, and cuts the power right after its last response. Nothing else writes meanwhile: other durable
// writes would also commit queued writes, and hide a response that was sent too early.
func (o *outage) alone(c *chore, r *rand.Rand) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	for range 1 + r.IntN(3) {
		if err := c.act(ctx, c, r); err != nil {
			o.t.Errorf("%s: %v", c.name, err)
		}
	}
	o.cut()
}

// talks runs a robot that opens its channel and gets texts to answer, until ctx ends.
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
	running.Go(func() { _ = robot.Run(ctx) }) // fails when the power is cut
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

// senses reports a face that a robot sees, again and again, until ctx ends.
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
