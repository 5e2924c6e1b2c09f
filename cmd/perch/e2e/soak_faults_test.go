package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"perch/cmd/perch/appliancetest"
)

// soakFault is a fault. Function do causes it, ends it, and returns text for the log.
type soakFault struct {
	name string
	do   func(ctx context.Context, r *rand.Rand) (string, error)
}

// faults returns all faults except power cuts and the two rushes that follow them.
func (s *soak) faults() []soakFault {
	all := []soakFault{
		{"broker stopped", s.stopBroker},
		{"robot vanished", s.vanish},
		{"slow skin", s.slowSkin},
		{"many connections", s.manyConnections},
		{"bad input", s.badInput},
		{"everybody talks at once", s.rush},
		{deafRush, s.rushDeaf},
	}
	for _, peer := range []appliancetest.Peer{appliancetest.Recognizer, appliancetest.Brain, appliancetest.Synthesizer} {
		for _, ill := range []appliancetest.Failure{appliancetest.Silent, appliancetest.Garbled, appliancetest.Dying} {
			all = append(all, soakFault{string(peer) + " " + string(ill), s.sicken(peer, ill)})
		}
	}
	if s.small != "" {
		all = append(all, soakFault{"disk full", s.fillDisk})
	}
	return all
}

// deafRush is the name of rushDeaf. It fills both slots of the appliance's local recognizer, and makes utterances wait
// for a slot.
const deafRush = "all robots talk at once to failing recognizers"

// muteRush is the name of rushMute. It makes the appliance start espeak, whose process keeps running.
const muteRush = "all robots talk at once to a failing synthesizer"

// spoil causes one fault after the other until ctx ends or the appliance has ended. The order is random, and each fault
// is caused once before any is repeated. If killed is not nil, spoil calls it to kill the appliance, first after a fifth
// of length or soakKillEvery, whichever is less, and again only during the first two fifths of length: the process that is
// measured afterwards has then run for a while. After each kill, two rushes make the new process use all its engines at
// the same time.
func (s *soak) spoil(ctx context.Context, length time.Duration, killed func(context.Context)) {
	began := time.Now()
	every := min(length/5, soakKillEvery)
	var deck []soakFault
	for kills := 1; ctx.Err() == nil && s.appliance.running(); {
		since := time.Since(began)
		if killed != nil && since > time.Duration(kills)*every && (kills == 1 || since < length*2/5) {
			kills++
			killed(ctx)
			s.happen(ctx, soakFault{deafRush, s.rushDeaf})
			s.happen(ctx, soakFault{muteRush, s.rushMute})
		}
		if len(deck) == 0 {
			deck = s.faults()
			s.rand.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s.happen(ctx, deck[0])
		deck = deck[1:]
		wait(ctx, soakBetween/2+time.Duration(s.rand.Int64N(int64(soakBetween))))
	}
}

// happen causes a fault, counts and logs it, and records an error of it as a failure.
func (s *soak) happen(ctx context.Context, f soakFault) {
	at := time.Now()
	done, err := f.do(ctx, s.rand)
	if err != nil && ctx.Err() == nil {
		s.fail("after %s at %s: %v", f.name, s.at(at), err)
	}
	s.count(func(c *figures) { c.faults[f.name]++ })
	s.say("%s for %s%s", f.name, time.Since(at).Round(100*time.Millisecond), done)
}

// rush makes every robot that is between two conversations begin one.
func (s *soak) rush(ctx context.Context, r *rand.Rand) (string, error) {
	for _, robot := range s.robots {
		select {
		case robot.hurry <- struct{}{}:
		default: // the robot has a request already
		}
	}
	wait(ctx, lasting(r))
	return "", nil
}

// rushDeaf makes all robots talk while the fake recognizer fails. That is more than two processors can recognize at the
// same time: all utterances are answered, but the sentences of an answer may come with pauses.
func (s *soak) rushDeaf(ctx context.Context, r *rand.Rand) (string, error) {
	defer s.trouble(speakers)()
	var ill sync.WaitGroup
	defer ill.Wait()
	ill.Go(func() { _, _ = s.rush(ctx, rand.New(rand.NewPCG(s.seed, 7))) })
	return s.sicken(appliancetest.Recognizer, appliancetest.Garbled)(ctx, r)
}

// rushMute makes all robots talk until the fake synthesizer has failed for a sentence, which espeak then speaks.
func (s *soak) rushMute(ctx context.Context, r *rand.Rand) (string, error) {
	defer s.trouble(speakers)()
	failed := func() int { return s.engines.Served(appliancetest.Synthesizer, appliancetest.Garbled) }
	before := failed()
	s.engines.SetFailure(appliancetest.Synthesizer, appliancetest.Garbled)
	defer s.engines.SetFailure(appliancetest.Synthesizer, appliancetest.Healthy)
	for began := time.Now(); failed() == before; {
		if time.Since(began) > soakLetGo {
			return "", fmt.Errorf("no sentence was asked of the synthesizer within %s", soakLetGo)
		}
		if _, err := s.rush(ctx, r); err != nil || ctx.Err() != nil {
			return "", err
		}
	}
	return fmt.Sprintf(", %d requests", failed()-before), nil
}

// lasting returns a random duration from soakShortest to soakLongest for a fault.
func lasting(r *rand.Rand) time.Duration {
	return soakShortest + time.Duration(r.Int64N(int64(soakLongest-soakShortest)))
}

// stopBroker kills mosquitto and starts it again at the same address.
func (s *soak) stopBroker(ctx context.Context, r *rand.Rand) (string, error) {
	_ = s.broker.Kill()
	_, _ = s.broker.Wait()
	wait(ctx, lasting(r))
	s.broker = appliancetest.StartMosquittoAt(s.t, s.brokerAt)
	return "", nil
}

// sicken returns a fault in which a fake engine fails.
func (s *soak) sicken(peer appliancetest.Peer, ill appliancetest.Failure) func(context.Context, *rand.Rand) (string, error) {
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		if peer != appliancetest.Recognizer { // a slow recognizer delays an answer, but causes no pauses in it
			defer s.trouble(speakers)()
		}
		if peer == appliancetest.Brain {
			defer s.trouble(brains)()
		}
		before := s.engines.Served(peer, ill)
		s.engines.SetFailure(peer, ill)
		wait(ctx, lasting(r))
		s.engines.SetFailure(peer, appliancetest.Healthy)
		return fmt.Sprintf(", %d requests", s.engines.Served(peer, ill)-before), nil
	}
}

// vanish switches one or two robots off during a conversation.
func (s *soak) vanish(ctx context.Context, r *rand.Rand) (string, error) {
	wanted, gone := 1+r.IntN(2), 0
	for range 20 { // for 4 seconds, until a robot is in a conversation
		for _, i := range r.Perm(len(s.robots)) {
			if gone < wanted && s.robots[i].vanish() {
				gone++
			}
		}
		if gone > 0 {
			break
		}
		wait(ctx, 200*time.Millisecond)
	}
	return fmt.Sprintf(", %d of them", gone), nil
}

// slowSkin connects a skin that subscribes to all events and never reads. The connection stays open after the fault,
// until quiet closes it, unless the appliance closes it before.
func (s *soak) slowSkin(ctx context.Context, r *rand.Rand) (string, error) {
	c, err := dialSocket(ctx, "127.0.2.201", s.appliance.listen, "/v1/vtuber/ws", 4096, "Authorization", "Bearer "+soakSkinsKey)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.slow = append(s.slow, c)
	s.mu.Unlock()
	err = c.write(websocket.TextMessage,
		[]byte(`{"type":"subscribe","events":["agent_state","tool_status","emotion","notification","notification_changed"],"states":"all"}`))
	wait(ctx, lasting(r)/2)
	return "", err
}

// manyConnections opens soakConnections connections at the same time, from 16 addresses that no other client uses. Half
// of them send nothing, and half send an incomplete request.
func (s *soak) manyConnections(ctx context.Context, r *rand.Rand) (string, error) {
	var mu sync.Mutex
	var open []net.Conn
	var wg sync.WaitGroup
	refused := 0
	for n := range soakConnections {
		wg.Go(func() {
			c, err := soakDialer(fmt.Sprintf("127.0.3.%d", n%16+1)).DialContext(ctx, "tcp", s.appliance.listen)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused++
				return
			}
			open = append(open, c)
			if n%2 == 0 {
				_, _ = c.Write([]byte("GET /v1/vtuber/ws HTTP/1.1\r\nHost: " + s.appliance.listen + "\r\n")) // the appliance may have closed the connection
			}
		})
	}
	wg.Wait()
	wait(ctx, lasting(r)/2)
	for _, c := range open {
		_ = c.Close()
	}
	return fmt.Sprintf(", %d opened, %d refused", len(open), refused), nil
}

// fillDisk fills the small file system with the data directory completely, for a while.
func (s *soak) fillDisk(ctx context.Context, r *rand.Rand) (string, error) {
	defer s.trouble(disk)()
	name := filepath.Join(s.small, "filler")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	for chunk := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(chunk)
	}
	full := errors.Is(err, syscall.ENOSPC)
	for err = nil; err == nil; { // fill the space that was too small for a chunk
		_, err = f.Write([]byte{0})
	}
	wait(ctx, lasting(r))
	closing, removing := f.Close(), os.Remove(name)
	if !full {
		return "", err
	}
	return "", errors.Join(closing, removing)
}

// powerCut kills the appliance during a burst of writes, and starts it again with the same data.
func (s *soak) powerCut(ctx context.Context) {
	over := s.trouble(everybody)
	s.burst.Store(true)
	enough := s.written.Load() + 1 + s.rand.Int64N(soakBurst)
	for began := time.Now(); s.written.Load() < enough && time.Since(began) < soakRecover && ctx.Err() == nil; {
		wait(ctx, time.Millisecond)
	}
	s.appliance.kill()
	s.burst.Store(false)
	err := s.appliance.start()
	if err != nil && ctx.Err() == nil {
		s.fail("after a power cut: %v", err)
	}
	wait(ctx, soakReturn)
	over()
	select {
	case s.checks <- "after a power cut":
	default: // the check after the previous power cut has not begun
	}
	s.count(func(f *figures) { f.faults["killed by SIGKILL"]++ })
	s.say("killed by SIGKILL, and back after %s", s.appliance.starts[len(s.appliance.starts)-1].Round(time.Millisecond))
}

// badInput sends invalid bodies to every kind of route, and noise to the listeners. The response to a body must not have
// the status 500.
func (s *soak) badInput(ctx context.Context, r *rand.Rand) (string, error) {
	noise := make([]byte, 200+r.IntN(3000))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	bodies := []string{"", "null", "[]", `{"a":`, `"text"`, `{"text":1e999}`, `{"robot":{"robot":[]}}`, `{"messages":"x","model":7}`, string(noise)}
	sent := 0
	for _, route := range []struct{ method, path, key string }{
		{"POST", "/xiaozhi/ota/", ""}, {"POST", "/xiaozhi/ota/activate", ""}, {"GET", "/xiaozhi/v1/", ""}, {"POST", "/xiaozhi/vision/explain", ""},
		{"POST", "/v1/chat/completions", soakSkinsKey}, {"POST", "/v1/vtuber/notifications", soakSkinsKey}, {"POST", "/mcp", soakSkinsKey},
		{"POST", "/state", soakSkinsKey}, {"POST", "/permission", soakSkinsKey}, {"POST", "/api/message", soakBridgeKey},
		{"POST", "/api/perception/event", soakBridgeKey}, {"POST", "/api/voice/remember", soakBridgeKey}, {"POST", "/api/v1/adopt", "wrong"},
	} {
		if ctx.Err() != nil {
			break
		}
		body := bodies[r.IntN(len(bodies))]
		header := []string{"Device-Id", "a0:b1:c2:ba:d0:01", "Client-Id", "bad"}
		if route.key != "" {
			header = append(header, "Authorization", "Bearer "+route.key)
		}
		status, text, err := soakRequest(ctx, fmt.Sprintf("127.0.4.%d", 1+r.IntN(200)), route.method, "http://"+s.appliance.listen+route.path, body,
			header...)
		sent++
		if status == http.StatusInternalServerError {
			return "", fmt.Errorf("%s %s with %.40q broke something: %.200s", route.method, route.path, body, text)
		}
		if err != nil && ctx.Err() == nil {
			return "", fmt.Errorf("%s %s with %.40q: %w", route.method, route.path, body, err)
		}
	}
	return fmt.Sprintf(", %d requests", sent), errors.Join(s.badFrames(ctx, noise), s.badBytes(ctx, noise))
}

// badFrames sends invalid messages and noise to a skin's WebSocket. The appliance may close the connection.
func (s *soak) badFrames(ctx context.Context, noise []byte) error {
	c, err := dialSocket(ctx, "127.0.4.250", s.appliance.listen, "/v1/vtuber/ws", 0, "Authorization", "Bearer "+soakSkinsKey)
	if err != nil {
		return err
	}
	defer c.drop()
	for _, text := range []string{"", "null", `{"type":[]}`, `{"type":"ack","id":7}`, `{"type":"answer"}`, string(noise)} {
		if c.write(websocket.TextMessage, []byte(text)) != nil || c.write(websocket.BinaryMessage, noise) != nil {
			break // the appliance has closed the connection
		}
	}
	_, _ = c.NetConn().Write(noise)
	return nil
}

// badBytes sends noise that is not HTTP to both listeners.
func (s *soak) badBytes(ctx context.Context, noise []byte) error {
	for _, address := range []string{s.appliance.listen, s.appliance.local} {
		c, err := soakDialer("127.0.4.251").DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		_, _ = c.Write(noise) // the appliance may close the connection
		_ = c.Close()
	}
	return nil
}
