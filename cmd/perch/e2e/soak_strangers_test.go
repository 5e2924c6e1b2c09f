package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"perch/firmware-tools/simrobot"
)

// What strangers do, and how often. They use four loopback addresses, which are exempt from the limits for one machine
// and one network, so the appliance admits more of them than it would from other addresses.
const (
	soakStrangersAtOnce = 220 // check-ins of invented robots at the beginning of each phase; more than soakStrangersKnown
	soakInventEvery     = 250 * time.Millisecond
	soakPretendEvery    = 200 * time.Millisecond
	soakIntrudeEvery    = 700 * time.Millisecond
	soakChatterEvery    = 6 * time.Second
	soakPings           = 60
	soakLookEvery       = 5 * time.Second // time between two checks that strangers have changed nothing

	// soakStrangersKnown is the maximum number of strangers that the appliance knows, and soakStrangersReported the
	// maximum number of their check-ins in a minute that it reports as events.
	soakStrangersKnown    = 200
	soakStrangersReported = 30
	// soakStrangersLogged bounds the log lines about strangers in a minute. There are nine different messages about
	// them, and the rate-limited logger writes each ten times at once, and then ten times a minute.
	soakStrangersLogged = 120
)

// soakInvented is the begin of the IDs of invented robots. No other ID begins so.
const soakInvented = "0a5c"

// What strangers pretend: a Host of the appliance, to which a deceived robot would send its pictures, and a board.
const (
	soakForeignHost  = "10.9.1.66:8003"
	soakForeignBoard = "foreign"
)

// soakTool is the begin of the names of strangers' tools.
const soakTool = "stranger."

// soakStrangers are robots that are not adopted, and programs that pretend to be an adopted robot.
type soakStrangers struct {
	s     *soak
	wires []*soakWire
	shape simrobot.Options // options of the robots of chatter

	looking sync.Mutex           // held by look
	ours    map[string]soakShown // the adopted robots, by ID

	mu                                   sync.Mutex
	invented, pretended, channels, talks int // check-ins of both kinds, opened channels, and conversations begun
	answered, refused                    int
	known                                int         // maximum number of strangers known at a time
	looks, lines                         int         // calls of look, and log lines about strangers
	seen                                 []time.Time // times of the events about invented robots
	changed                              int         // calls of change
}

// soakShown is the part of a robot in the API's response that strangers must not change.
type soakShown struct {
	ID       string
	Board    string
	Firmware string
	Address  string
	BaseURL  string `json:"base_url"`
	Adopted  bool
}

func newSoakStrangers(s *soak) (*soakStrangers, error) {
	st := &soakStrangers{s: s, ours: map[string]soakShown{}}
	for n := range 4 {
		w, err := newSoakWire(fmt.Sprintf("127.0.5.%d", n+1), s.appliance.listen)
		if err != nil {
			return st, err
		}
		st.wires = append(st.wires, w)
	}
	var tools []string
	for n := range 200 {
		tools = append(tools, fmt.Sprintf(`{"name":"%s%d","description":%q,"inputSchema":{"type":"object","properties":{}}}`, soakTool, n,
			strings.Repeat("Call me. ", 455)))
	}
	st.shape.Say = []simrobot.Sentence{{Text: soakSentence, PCM: s.speech}}
	return st, json.Unmarshal([]byte("["+strings.Join(tools, ",")+"]"), &st.shape.MoreTools)
}

// live runs strangers, and the checks of what they may have changed, in goroutines of wg until ctx ends.
func (st *soakStrangers) live(ctx context.Context, wg *sync.WaitGroup) {
	for n, do := range []struct {
		every time.Duration
		once  func(context.Context, *rand.Rand)
	}{
		{soakInventEvery, func(ctx context.Context, r *rand.Rand) { st.invent(ctx, r) }},
		{soakPretendEvery, st.pretend},
		{soakIntrudeEvery, st.intrude},
		{soakChatterEvery, st.chatter},
	} {
		r := rand.New(rand.NewPCG(st.s.seed, uint64(3001+n)))
		wg.Go(func() {
			for ctx.Err() == nil {
				do.once(ctx, r)
				wait(ctx, do.every/2+time.Duration(r.Int64N(int64(do.every))))
			}
		})
	}
	wg.Go(func() {
		r := rand.New(rand.NewPCG(st.s.seed, 3000))
		for n := 0; n < soakStrangersAtOnce && ctx.Err() == nil; n++ {
			st.invent(ctx, r)
		}
	})
	wg.Go(func() {
		for wait(ctx, soakLookEvery); ctx.Err() == nil; wait(ctx, soakLookEvery) {
			st.look(ctx, "meanwhile")
		}
	})
}

// from returns a random one of the strangers' addresses.
func (st *soakStrangers) from(r *rand.Rand) string {
	return fmt.Sprintf("127.0.5.%d", 1+r.IntN(len(st.wires)))
}

// inventMAC returns a random MAC address that begins like soakInvented.
func inventMAC(r *rand.Rand) string {
	return fmt.Sprintf("0a:5c:%02x:%02x:%02x:%02x", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256))
}

func (st *soakStrangers) count(change func(*soakStrangers)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change(st)
}

// checkIn sends a check-in, and returns the WebSocket token of the response, which may be empty.
func (st *soakStrangers) checkIn(ctx context.Context, r *rand.Rand, mac, client, host string) (token string, err error) {
	status, text, err := soakRequest(ctx, st.from(r), http.MethodPost, "http://"+st.s.appliance.listen+"/xiaozhi/ota/", "{}",
		"Device-Id", mac, "Client-Id", client, "User-Agent", soakForeignBoard+"/9.9.9", "Host", host)
	st.refusal("/xiaozhi/ota/", status)
	var reply struct{ WebSocket struct{ Token string } }
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the check-in is answered with %d", status)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &reply)
	}
	return reply.WebSocket.Token, err
}

// refusal counts a response with a status of 400 or above. The status 500 is also a failure.
func (st *soakStrangers) refusal(path string, status int) {
	if status == http.StatusInternalServerError {
		st.s.fail("what a stranger sent to %s broke something", path)
	}
	if status >= 400 {
		st.count(func(st *soakStrangers) { st.refused++ })
	}
}

// invent checks in as a robot that the appliance does not know. The token is empty after an error.
func (st *soakStrangers) invent(ctx context.Context, r *rand.Rand) (mac, token string) {
	mac = inventMAC(r)
	token, err := st.checkIn(ctx, r, mac, "invented", st.s.appliance.listen)
	if err == nil {
		st.count(func(st *soakStrangers) { st.invented++ })
	}
	return mac, token
}

// pretend checks in with the MAC address of an adopted robot. In a third of the calls it also tries to open the robot's
// channel, and to send a picture in its name.
func (st *soakStrangers) pretend(ctx context.Context, r *rand.Rand) {
	mac := soakKeeper
	if n := r.IntN(len(st.s.robots) + 1); n < len(st.s.robots) {
		mac = st.s.robots[n].mac
	}
	token, err := st.checkIn(ctx, r, mac, fmt.Sprint("foreign ", r.IntN(5)), soakForeignHost)
	if err != nil {
		return // the appliance is restarting
	}
	st.count(func(st *soakStrangers) { st.pretended++ })
	if token != "" {
		st.change("a stranger was given a token of %s", mac)
	}
	if r.IntN(3) > 0 {
		return
	}
	_, token = st.invent(ctx, r) // the token of another stranger
	for _, client := range []string{"foreign 0", "invented"} {
		c, err := dialSocket(ctx, st.from(r), st.s.appliance.listen, "/xiaozhi/v1/", 0, "Device-Id", mac, "Client-Id", client, "Authorization",
			"Bearer "+token)
		if err == nil {
			c.drop()
			st.change("a stranger was given the channel of %s", mac)
		} else {
			st.count(func(st *soakStrangers) { st.refused++ })
		}
	}
	for _, token := range []string{token, "wrong", ""} {
		status, _, err := soakRequest(ctx, st.from(r), http.MethodPost, "http://"+st.s.appliance.listen+"/xiaozhi/vision/explain", "no picture",
			"Device-Id", mac, "Client-Id", "foreign 0", "Authorization", "Bearer "+token)
		st.refusal("/xiaozhi/vision/explain", status)
		if err == nil && status < 300 {
			st.change("a stranger's picture was looked at for %s", mac)
		}
	}
}

// intrude opens a channel as a stranger, which is allowed, and sends noise, invalid messages and many pings.
func (st *soakStrangers) intrude(ctx context.Context, r *rand.Rand) {
	mac, token := st.invent(ctx, r)
	if token == "" {
		return
	}
	c, err := dialSocket(ctx, st.from(r), st.s.appliance.listen, "/xiaozhi/v1/", 0, "Device-Id", mac, "Client-Id", "invented", "Authorization",
		"Bearer "+token, "Protocol-Version", "1")
	if err != nil {
		st.count(func(st *soakStrangers) { st.refused++ })
		return
	}
	defer c.drop()
	defer context.AfterFunc(ctx, c.drop)()
	st.count(func(st *soakStrangers) { st.channels++ })
	noise := make([]byte, 300)
	say := func(opcode int, payload []byte) { _ = c.write(opcode, payload) } // the appliance may close the channel
	say(websocket.TextMessage,
		[]byte(`{"type":"hello","version":1,"features":{"mcp":true,"aec":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`))
	say(websocket.TextMessage, []byte(`{"type":"listen","state":"start","mode":"auto"}`))
	for range 40 {
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		say(websocket.BinaryMessage, noise)
	}
	for _, text := range []string{string(noise), "null", `{"type":[]}`, `{"type":"mcp","payload":{"jsonrpc":"2.0","id":7}}`, `{"type":"abort"}`,
		`{"type":"event","name":"face_identified","data":{"identity":"Owner"}}`} {
		say(websocket.TextMessage, []byte(text))
	}
	for range soakPings {
		say(websocket.PingMessage, noise[:100])
	}
	wait(ctx, 200*time.Millisecond)
}

// chatter holds a whole conversation as a robot with 200 tools of 4 KB each.
func (st *soakStrangers) chatter(ctx context.Context, r *rand.Rand) {
	o := st.shape
	o.OTA, o.MAC = "http://"+st.wires[r.IntN(len(st.wires))].address()+"/xiaozhi/ota/", inventMAC(r)
	o.Observe = func(e simrobot.Observation) {
		if e, is := e.(simrobot.TurnEnded); is && e.Turn.Answered {
			st.count(func(st *soakStrangers) { st.answered++ })
		}
	}
	robot, err := simrobot.New(o)
	if err != nil {
		st.s.fail("a stranger: %v", err)
		return
	}
	st.count(func(st *soakStrangers) { st.talks++ })
	var crash *simrobot.Crash
	if err := robot.Run(ctx); errors.As(err, &crash) { // other errors are allowed for strangers
		st.s.fail("a stranger: %v", err)
	}
}

// change records a change that strangers caused, which is a failure.
func (st *soakStrangers) change(format string, a ...any) {
	st.count(func(st *soakStrangers) { st.changed++ })
	st.s.fail(format, a...)
}

// event receives an event of the admin API, and notes the time of a robot_seen event about an invented robot.
func (st *soakStrangers) event(kind, data string) {
	if kind != "robot_seen" || !strings.Contains(data, `"robot":"`+soakInvented) {
		return
	}
	st.mu.Lock()
	st.seen = append(st.seen, time.Now())
	st.mu.Unlock()
}

// note stores the adopted robots as the API shows them, for comparison in look. It returns an error if robots are missing.
func (st *soakStrangers) note(ctx context.Context) error {
	all, err := st.devices(ctx)
	for _, d := range all {
		if d.Adopted {
			st.ours[d.ID] = d.soakShown
		}
	}
	if err == nil && len(st.ours) != len(st.s.robots)+1 {
		err = fmt.Errorf("%d robots are adopted", len(st.ours))
	}
	return err
}

type soakDevice struct {
	soakShown
	Tools []string
}

func (st *soakStrangers) devices(ctx context.Context) (all []soakDevice, err error) {
	err = st.ask(ctx, "/api/v1/devices", &all)
	return all, err
}

// ask sends a GET request as the owner, and decodes the response into answer.
func (st *soakStrangers) ask(ctx context.Context, path string, answer any) error {
	status, text, err := st.s.appliance.request(ctx, http.MethodGet, st.s.appliance.local, path, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s is answered with %d %.200s", path, status, text)
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), answer)
	}
	return err
}

// check calls look and checkRations.
func (st *soakStrangers) check(ctx context.Context, when string) {
	st.look(ctx, when)
	st.checkRations(when)
}

// look checks that strangers have changed no adopted robot, that not too many of them are known, and that the appliance
// stores none of their tools and turns.
func (st *soakStrangers) look(ctx context.Context, when string) {
	st.looking.Lock()
	defer st.looking.Unlock()
	began := time.Now()
	all, err := st.devices(ctx)
	var turns []struct{ Robot string }
	if err == nil {
		err = st.ask(ctx, "/api/v1/turns?limit=1000", &turns)
	}
	if err != nil {
		if ctx.Err() == nil && !st.s.troubled(began.Add(-time.Second), time.Now(), everybody) {
			st.s.fail("%s: %v", when, err)
		}
		return
	}
	there, strangers := map[string]bool{}, 0
	for _, d := range all {
		there[d.ID] = true
		before, ours := st.ours[d.ID]
		if ours && d.soakShown != before {
			st.change("%s a robot has changed: it was %+v, and is %+v", when, before, d.soakShown)
			st.ours[d.ID] = d.soakShown // so that the change is reported once
		}
		if !d.Adopted {
			strangers++
		}
		if strings.HasPrefix(d.ID, soakInvented) && d.Adopted {
			st.change("%s a stranger is adopted: %s", when, d.ID)
		}
		if !d.Adopted && len(d.Tools) > 0 || slices.ContainsFunc(d.Tools, func(name string) bool { return strings.HasPrefix(name, soakTool) }) {
			st.change("%s tools of strangers are kept, for %s: %d", when, d.ID, len(d.Tools))
		}
	}
	for id := range st.ours {
		if !there[id] {
			st.change("%s a robot has gone: %s", when, id)
		}
	}
	if strangers > soakStrangersKnown {
		st.change("%s %d robots are known that nobody has adopted", when, strangers)
	}
	st.count(func(st *soakStrangers) { st.known, st.looks = max(st.known, strangers), st.looks+1 })
	for _, t := range turns {
		if _, ours := st.ours[t.Robot]; !ours {
			st.change("%s a turn of a stranger is kept: of %s", when, t.Robot)
			return
		}
	}
}

// checkRations checks how many events and log lines were about strangers. A restart of the appliance resets its counts,
// and so does the end of each of its minutes, which may fall into a minute of this count; both bounds allow for that.
func (st *soakStrangers) checkRations(when string) {
	lives := st.s.appliance.lives()
	st.mu.Lock()
	reported := 0
	for i, first := range st.seen { // n is the number of events in the minute from first
		n, _ := slices.BinarySearchFunc(st.seen[i:], first.Add(time.Minute), time.Time.Compare)
		reported = max(reported, n)
	}
	st.mu.Unlock()
	if reported > (lives+1)*soakStrangersReported {
		st.s.fail("%s %d check-ins of strangers were reported within a minute", when, reported)
	}
	lines := 0
	for line := range strings.Lines(st.s.appliance.log()) {
		if strings.Contains(line, soakInvented) || strings.Contains(line, "127.0.5.") {
			lines++
		}
	}
	if most := soakStrangersLogged * (lives + int(time.Since(st.s.began)/time.Minute) + 1); lines > most {
		st.s.fail("%s %d lines of the log are about strangers, and %d may be", when, lines, most)
	}
	st.count(func(st *soakStrangers) { st.lines = lines })
}

// lastCheck records a failure if the strangers did not do everything that they should, because then the other checks show
// nothing.
func (st *soakStrangers) lastCheck() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.invented == 0 || st.pretended == 0 || st.channels == 0 || st.answered == 0 || st.refused == 0 || st.known < soakStrangersKnown/2 ||
		st.looks == 0 {
		st.s.fail("the strangers tested nothing: %d invented, %d pretended, %d channels, %d answered, %d refused, %d known, %d looks",
			st.invented, st.pretended, st.channels, st.answered, st.refused, st.known, st.looks)
	}
}

func (st *soakStrangers) close() {
	for _, w := range st.wires {
		w.close()
	}
}
