package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"perch/firmware-tools/simrobot"
)

// soakOwner sends writes to the appliance, and lists those that were acknowledged. A write without a response is not
// listed, because it may or may not have taken effect. A soakOwner is used by one goroutine at a time.
type soakOwner struct {
	s    *soak
	rand *rand.Rand
	n    int // writes begun

	facts   []string          // one unique word of each stored memory, oldest first
	forgot  []string          // the words of deleted memories
	notices []string          // IDs of notifications
	timers  []string          // IDs
	unsure  map[string]bool   // timers that an unanswered request may have cancelled
	ghosts  map[string]string // "adopted" or "forgotten", by MAC address; no entry if the state is unknown
	acked   map[string]int    // by kind
	refused map[string]int    // by kind
	checked int
}

// How many objects of each kind exist at a time. The numbers are below the limits of the appliance (2000 memories, 20
// pending notifications, 20 timers of a robot), so that the appliance itself removes none.
const (
	soakFacts   = 300
	soakNotices = 12
	soakTimed   = 8
	soakGhosts  = 12
)

func newSoakOwner(s *soak) *soakOwner {
	return &soakOwner{s: s, rand: rand.New(rand.NewPCG(s.seed, 1000)), unsure: map[string]bool{}, ghosts: map[string]string{},
		acked: map[string]int{}, refused: map[string]int{}}
}

// live writes until the context ends.
func (o *soakOwner) live(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case when := <-o.s.checks:
			o.check(ctx, when)
		default:
			o.write(ctx)
		}
		if !o.s.burst.Load() {
			wait(ctx, soakWriteEvery/2+time.Duration(o.rand.Int64N(int64(soakWriteEvery))))
		}
	}
}

// write sends a random write.
func (o *soakOwner) write(ctx context.Context) {
	o.n++
	k := o.rand.IntN(10)
	if o.s.burst.Load() {
		// No timers, which take seconds, and no adoption or removal of robots, which would also write changes that
		// the appliance was about to write later.
		k = min(k, 6)
	}
	switch {
	case k < 5:
		o.remember(ctx)
	case k < 7:
		o.notify(ctx)
	case k < 8:
		o.setTimer(ctx)
	default:
		o.adoptOrForget(ctx)
	}
}

// ask sends a request of some kind to the local address, and reports whether it succeeded. An error outside the periods
// of power cuts and full disks is a failure.
func (o *soakOwner) ask(ctx context.Context, kind, method, path, body string) (string, bool) {
	began := time.Now()
	status, text, err := o.s.appliance.request(ctx, method, o.s.appliance.local, path, body)
	if err == nil && status < 300 {
		o.acked[kind]++
		o.s.written.Add(1)
		return text, true
	}
	if ctx.Err() == nil {
		o.refused[kind]++
		if !o.s.troubled(began.Add(-time.Second), time.Now(), everybody) && !o.s.troubled(began.Add(-soakRecover), time.Now(), disk) {
			o.s.fail("%s %s at %s: %d %.200s %v", method, path, o.s.at(began), status, text, err)
		}
	}
	return text, false
}

// remember stores a memory with a new word, and deletes the oldest if there are more than soakFacts.
func (o *soakOwner) remember(ctx context.Context) bool {
	word := fmt.Sprintf("soak%xx%d", o.s.seed, o.n)
	_, done := o.ask(ctx, "remember", http.MethodPost, "/api/voice/remember", fmt.Sprintf(`{"fact":"The word is %s."}`, word))
	if done {
		o.facts = append(o.facts, word)
	}
	if len(o.facts) > soakFacts {
		o.forget(ctx, o.facts[0])
	}
	return done
}

// forget deletes the memory with a word, which must be the first of o.facts.
func (o *soakOwner) forget(ctx context.Context, word string) {
	for _, m := range o.memory(ctx, word) {
		if !strings.Contains(m.Body, word+".") {
			continue
		}
		o.facts = o.facts[1:]
		if _, done := o.ask(ctx, "forget", http.MethodDelete, "/api/v1/memory/"+m.ID, ""); done {
			o.forgot = append(o.forgot, word)
		}
	}
}

type memory struct{ ID, Body string }

// memory returns the memories that match a word, or all if it is empty. It returns nil after an error.
func (o *soakOwner) memory(ctx context.Context, word string) (all []memory) {
	_, text, err := o.s.appliance.request(ctx, http.MethodGet, o.s.appliance.local, "/api/v1/memory?q="+word, "")
	if err == nil {
		_ = json.Unmarshal([]byte(text), &all)
	}
	return all
}

// notify sends a notification with a low urgency that is not spoken.
func (o *soakOwner) notify(ctx context.Context) {
	id := fmt.Sprintf("soak-%d", o.n)
	_, done := o.ask(ctx, "notify", http.MethodPost, "/api/v1/notifications",
		fmt.Sprintf(`{"id":%q,"text":"Notice %d.","speak":false,"urgency":"low"}`, id, o.n))
	if done {
		o.notices = append(o.notices, id)
	}
	if len(o.notices) > soakNotices {
		o.checkNotices(ctx)
	}
}

// setTimer asks the keeper to set a timer. The write counts as acknowledged if the tool's result contains the timer's ID.
func (o *soakOwner) setTimer(ctx context.Context) {
	if now := time.Now(); o.s.troubled(now.Add(-soakPatience), now, brains) || o.s.troubled(now.Add(-soakRecover), now, disk) {
		return // the fake language model would not be asked, or the timer not stored
	}
	text := o.tell(ctx, fmt.Sprintf("set %d", o.n))
	if id := soakTimerID.FindStringSubmatch(text); id != nil {
		o.acked["timer"]++
		o.timers = append(o.timers, id[1])
	} else if ctx.Err() == nil {
		o.refused["timer"]++
	}
	if len(o.timers) > soakTimed {
		o.checkTimers(ctx)
	}
	if strings.Contains(text, "too many") { // timers whose acknowledgement was lost use up the limit
		o.checkTimers(ctx)
		o.tell(ctx, "cancel all")
	}
}

var soakTimerID = regexp.MustCompile(`Its id is (\S+)\.`)

// tell injects a text as if it had been spoken to the keeper, and returns the result of the tool that the fake language
// model calls then, or "" if no result arrives within soakToolWithin.
func (o *soakOwner) tell(ctx context.Context, what string) string {
	select {
	case <-o.s.timers: // a late result of an earlier call
	default:
	}
	status, _, err := o.s.appliance.request(ctx, http.MethodPost, o.s.appliance.local, "/admin/inject-text",
		fmt.Sprintf(`{"device_id":%q,"text":"soak %s"}`, soakKeeper, what))
	if err != nil || status != http.StatusOK {
		return ""
	}
	select {
	case text := <-o.s.timers:
		wait(ctx, 3*time.Second) // the keeper speaks its answer
		return text
	case <-time.After(soakToolWithin):
	case <-ctx.Done():
	}
	return ""
}

// adoptAll makes the keeper and every soakRobot check in once, and adopts them by their IDs. Robots that check in later
// are strangers.
func (o *soakOwner) adoptAll(ctx context.Context) error {
	shapes := []simrobot.Options{o.s.keeperShape()}
	for _, r := range o.s.robots {
		shapes = append(shapes, r.options())
	}
	for _, shape := range shapes {
		robot, err := simrobot.New(shape)
		if err != nil {
			return err
		}
		if err := robot.Boot(ctx); err != nil {
			return err
		}
		status, text, err := o.s.appliance.request(ctx, http.MethodPost, o.s.appliance.local, "/api/v1/adopt",
			fmt.Sprintf(`{"robot":%q}`, robot.ID()))
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("adopt %s: %d %.200s %v", robot.ID(), status, text, err)
		}
	}
	return nil
}

// adoptOrForget checks in as one of soakGhosts robots and adopts it, or forgets it if it is adopted.
func (o *soakOwner) adoptOrForget(ctx context.Context) {
	mac := fmt.Sprintf("a0:b1:c2:60:57:%02x", o.rand.IntN(soakGhosts))
	id := strings.ReplaceAll(mac, ":", "")
	if o.ghosts[mac] == "adopted" {
		delete(o.ghosts, mac)
		if _, done := o.ask(ctx, "forget robot", http.MethodDelete, "/api/v1/devices/"+id, ""); done {
			o.ghosts[mac] = "forgotten"
		}
		return
	}
	delete(o.ghosts, mac)
	status, _, err := soakRequest(ctx, "", http.MethodPost, "http://"+o.s.appliance.listen+"/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id",
		"ghost")
	if err != nil || status != http.StatusOK {
		return
	}
	if _, done := o.ask(ctx, "adopt", http.MethodPost, "/api/v1/adopt", fmt.Sprintf(`{"robot":%q}`, id)); done {
		o.ghosts[mac] = "adopted"
	}
}

// check looks for the effect of every acknowledged write, and records each missing one as a failure. Notifications and
// timers are removed by that. when is text for the messages.
func (o *soakOwner) check(ctx context.Context, when string) {
	o.s.say("looking for %d memories, %d notifications, %d timers and %d robots %s", len(o.facts), len(o.notices), len(o.timers), len(o.ghosts), when)
	there := map[string]bool{}
	for _, m := range o.memory(ctx, "") {
		for _, w := range strings.Fields(m.Body) {
			there[strings.Trim(w, ".")] = true
		}
	}
	o.facts = slices.DeleteFunc(o.facts, func(word string) bool {
		o.checked++
		if !there[word] {
			o.s.fail("%s an acknowledged memory is lost: %s", when, word)
		}
		return !there[word] // so that the loss is reported once
	})
	for _, word := range o.forgot {
		if o.checked++; there[word] {
			o.s.fail("%s a memory is there again that was forgotten: %s", when, word)
		}
	}
	for mac, what := range o.ghosts {
		o.checked++
		status, text, err := o.s.appliance.request(ctx, http.MethodGet, o.s.appliance.local, "/api/v1/devices/"+strings.ReplaceAll(mac, ":", ""), "")
		var d struct{ Adopted bool }
		_ = json.Unmarshal([]byte(text), &d) // a response without a robot counts as not adopted
		if adopted := status == http.StatusOK && d.Adopted; err != nil || adopted != (what == "adopted") || what == "forgotten" &&
			status != http.StatusNotFound {
			o.s.fail("%s robot %s, which was %s, is shown as %d %.200s %v", when, mac, what, status, text, err)
		}
	}
	o.s.foreign.check(ctx, when)
	o.checkNotices(ctx)
	o.checkTimers(ctx)
}

// checkNotices acknowledges the notifications one by one over a skin's WebSocket. If the appliance does not know one, a
// failure is recorded. After an error of the connection, the remaining notifications stay in the list for the next check.
func (o *soakOwner) checkNotices(ctx context.Context) {
	c, err := dialSocket(ctx, "127.0.2.200", o.s.appliance.listen, "/v1/vtuber/ws", 0, "Authorization", "Bearer "+soakSkinsKey)
	if err != nil {
		return // lastCheck fails if notifications remain
	}
	defer c.drop()
	defer context.AfterFunc(ctx, c.drop)()
	_ = c.SetReadDeadline(time.Now().Add(soakAnswerWithin))
	if c.write(websocket.TextMessage, []byte(`{"type":"subscribe","events":["notification_changed"]}`)) != nil {
		return
	}
	for len(o.notices) > 0 {
		id := o.notices[0]
		if c.write(websocket.TextMessage, []byte(fmt.Sprintf(`{"type":"ack","id":%q}`, id))) != nil {
			return
		}
		o.notices = o.notices[1:] // even if no answer arrives, it may be acknowledged now
		there, err := acknowledged(c, id)
		if err != nil {
			return
		}
		o.checked++
		if !there {
			o.s.fail("an acknowledged notification is lost: %s", id)
		}
	}
}

// acknowledged reads messages until the appliance has answered the acknowledgement of a notification, and reports whether
// the notification existed.
func acknowledged(c soakSocket, id string) (bool, error) {
	for {
		_, text, err := c.ReadMessage()
		if err != nil {
			return false, err
		}
		var f struct{ Type, ID, State, Code string }
		if err := json.Unmarshal(text, &f); err != nil {
			return false, err
		}
		switch {
		case f.Type == "notification_changed" && f.ID == id && f.State == "acknowledged":
			return true, nil
		case f.Type == "error" && f.Code == "unknown_notification":
			return false, nil
		}
	}
}

// checkTimers cancels the timers one by one, and records a failure for each that did not exist, unless an earlier request
// without an answer may have cancelled it. It gives up after three requests without an answer; the remaining timers stay
// in the list.
func (o *soakOwner) checkTimers(ctx context.Context) {
	for tries := 0; len(o.timers) > 0 && tries < 3 && ctx.Err() == nil; {
		id := o.timers[0]
		text := o.tell(ctx, "cancel "+id)
		if text == "" { // the keeper is not connected, or an engine fails
			tries++
			o.unsure[id] = true
			continue
		}
		if o.checked++; !strings.HasPrefix(text, "1 cancelled") && !o.unsure[id] {
			o.s.fail("an acknowledged timer is lost: %s: %s", id, text)
		}
		delete(o.unsure, id)
		o.timers = o.timers[1:]
	}
}

// soakKeeper is the MAC address of the keeper, a robot on which timers are set. It keeps its channel open and says
// nothing.
const soakKeeper = "A0:B1:C2:50:AC:FE"

// keeperShape returns the options of the keeper.
func (s *soak) keeperShape() simrobot.Options {
	return simrobot.Options{OTA: "http://" + s.appliance.listen + "/xiaozhi/ota/", MAC: soakKeeper, Firmware: "dotty", Stay: true}
}

// keeper runs the keeper until ctx ends.
func (s *soak) keeper(ctx context.Context) {
	event := simrobot.Sensed{}.Event
	event.Name, event.Data = "state_changed", []byte(`{"state":"idle"}`)
	for ctx.Err() == nil {
		o := s.keeperShape()
		o.Events = append(o.Events, event)
		if robot, err := simrobot.New(o); err == nil {
			_ = robot.Run(ctx) // after an error, the loop connects again
		}
		wait(ctx, time.Second)
	}
}
