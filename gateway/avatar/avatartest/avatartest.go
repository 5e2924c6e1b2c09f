// Package avatartest runs servers for avatar programs in tests, and connects to the servers as
// the programs do.
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

// Key is the key that Lock requires.
const Key = "key-of-the-skins"

// Lock returns a handler that refuses requests without Key. A client may also send the key in the
// query, as ?token=.
func Lock() gin.HandlerFunc {
	return httpserver.Guard(httpserver.InUpgrade(true, httpserver.NewKey(Key, "skins.key", "").Check))
}

// Server is a server for avatar programs.
type Server interface {
	Routes(r gin.IRouter)
	Run(ctx context.Context)
}

// Serve runs a server on loopback until the test ends or stop is called. url begins with ws://. stop
// may be called more than once.
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

// Appliance is a running server, with the feed and the bus that it uses.
type Appliance struct {
	Bus  *event.Bus
	Feed *feed.Feed
	URL  string // begins with ws://
	Stop func() // stops the server; also called at the end of the test, and may be called more than once
}

// NewFeed returns a feed that uses a bus and a board, and has no stored notifications.
func NewFeed(bus *event.Bus, board *agent.Board) *feed.Feed {
	return feed.New(feed.Options{Bus: bus, Board: board, Notices: notice.NewStore(&storetest.Table[notice.Notification]{}),
		Words: agent.StockWords(), Log: slog.New(slog.DiscardHandler)})
}

// Start runs the server that open returns, with a feed, until the test ends.
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

// Chats is an avatar.Chat that calls the function Answer instead of an agent.
type Chats struct {
	Answer func(ctx context.Context, text string, handle func(agent.Reply) error) error

	mu    sync.Mutex
	asked []string // as returned by Asked
}

// SessionOf returns session IDs like skin.Server.SessionOf: "vtb_" followed by the name of the
// conversation or by the robot. It returns an error for the robot "nobody".
func (*Chats) SessionOf(conversation string) (string, error) {
	if conversation == feed.RobotPrefix+"nobody" {
		return "", &httpserver.Fault{Word: "unknown_robot", Sentence: "there is no robot nobody", HTTP: http.StatusNotFound}
	}
	return "vtb_" + strings.TrimPrefix(conversation, feed.RobotPrefix), nil
}

// Chat calls Answer.
func (c *Chats) Chat(ctx context.Context, conversation, character, text string, handle func(agent.Reply) error) error {
	c.mu.Lock()
	c.asked = append(c.asked, fmt.Sprintf("%s %q %s", conversation, character, text))
	c.mu.Unlock()
	return c.Answer(ctx, text, handle)
}

// Asked returns the conversation, the character and the text of each question so far.
func (c *Chats) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}
