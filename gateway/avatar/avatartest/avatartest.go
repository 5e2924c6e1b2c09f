// Package avatartest runs the servers of avatar programs in tests, and connects to them as
// those programs do.
package avatartest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/must"
	"perch/store/storetest"
)

// Key is the key of servers behind Lock, as ?token=.
const Key = "key-of-the-skins"

// Lock returns a handler that requires Key.
func Lock() gin.HandlerFunc {
	return httpserver.Guard(httpserver.InUpgrade(true, httpserver.NewKey(Key, "skins.key", "").Check))
}

// Server is a server of avatar programs.
type Server interface {
	Routes(r gin.IRouter)
	Run(ctx context.Context)
}

// Serve runs a server on loopback until the test ends or stop is called, which may be called
// more than once.
func Serve(t testing.TB, s Server, locks ...gin.HandlerFunc) (url string, stop func()) {
	t.Helper()
	engine, err := httpserver.NewEngine(slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	s.Routes(engine.Group("", locks...))
	server := httptest.NewServer(engine)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		server.Close()
	})
	t.Cleanup(stop)
	return "ws" + strings.TrimPrefix(server.URL, "http"), stop
}

// Appliance is a server with a feed of the events of a bus.
type Appliance struct {
	Bus  *event.Bus
	Feed *feed.Feed
	URL  string
	Stop func() // may be called more than once; the end of the test calls it too
}

// NewFeed returns a feed of the events of a bus.
func NewFeed(bus *event.Bus, board *agent.Board) *feed.Feed {
	return feed.New(feed.Options{Bus: bus, Board: board, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}),
		Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler)})
}

// Start runs a server with a feed.
func Start(t testing.TB, open func(f *feed.Feed) Server, locks ...gin.HandlerFunc) *Appliance {
	t.Helper()
	a, board := &Appliance{Bus: event.NewBus()}, agent.NewBoard()
	a.Feed = NewFeed(a.Bus, board)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { board.Run(ctx, a.Bus.ReadFrom(1)) })
	running.Go(func() { a.Feed.Run(ctx) })
	url, stop := Serve(t, open(a.Feed), locks...)
	a.URL, a.Stop = url, sync.OnceFunc(func() {
		stop()
		cancel()
		running.Wait()
		a.Bus.Close()
	})
	t.Cleanup(a.Stop)
	return a
}

// Chats is an avatar.Chat with a scripted agent.
type Chats struct {
	Answer func(ctx context.Context, text string, take func(agent.Reply) error) error

	mu    sync.Mutex
	asked []string
}

// SessionOf returns sessions as package skin does: "vtb_desk", and "vtb_" with the robot for a
// robot's talk. No robot is called nobody.
func (*Chats) SessionOf(talk string) (string, error) {
	if talk == feed.OfRobot+"nobody" {
		return "", &httpserver.Fault{Word: "unknown_robot", Sentence: "there is no robot nobody", HTTP: http.StatusNotFound}
	}
	return "vtb_" + strings.TrimPrefix(talk, feed.OfRobot), nil
}

// Chat calls Answer.
func (c *Chats) Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error {
	c.mu.Lock()
	c.asked = append(c.asked, fmt.Sprintf("%s %q %s", talk, character, text))
	c.mu.Unlock()
	return c.Answer(ctx, text, take)
}

// Asked returns talk, character and text of each question so far.
func (c *Chats) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}
