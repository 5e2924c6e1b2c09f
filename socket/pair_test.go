package socket_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"perch/must"
	"perch/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen returns the URL of a server and the sockets it accepts.
func listen(t testing.TB, o socket.Options) (url string, accepted <-chan *socket.Conn) {
	t.Helper()
	conns := make(chan *socket.Conn, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := socket.Accept(w, r, o)
		if err != nil {
			t.Error(err)
			return
		}
		conns <- c
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http"), conns
}

// pair returns both ends of a socket over loopback. The appliance's end has
// the options given.
func pair(t testing.TB, o socket.Options) (appliance, robot *socket.Conn) {
	t.Helper()
	url, accepted := listen(t, o)
	robot, err := socket.Dial(t.Context(), url, socket.Options{MaxMessage: 4 << 20})
	must.Succeed(t, err)
	appliance = <-accepted
	t.Cleanup(appliance.Drop)
	t.Cleanup(robot.Drop)
	return appliance, robot
}

// raw returns the appliance's end, and the other as the library has it, for
// what a socket of ours never sends.
func raw(t testing.TB, o socket.Options) (appliance *socket.Conn, peer *websocket.Conn, tcp *net.TCPConn) {
	t.Helper()
	url, accepted := listen(t, o)
	peer, answer, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	must.Succeed(t, err)
	_ = answer.Body.Close() // an upgrade has none
	appliance = <-accepted
	t.Cleanup(appliance.Drop)
	t.Cleanup(func() { _ = peer.Close() }) // twice where the test has closed it
	return appliance, peer, peer.NetConn().(*net.TCPConn)
}
