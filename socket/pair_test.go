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

// listen starts a server. It returns the server's URL and the connections that the server accepts.
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

// pair returns both ends of a connection over loopback: the server's end, with the options o, and the robot's end.
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

// raw is like pair, but returns the other end as the library's connection and as the TCP connection below it. So a test
// can send what a Conn never sends.
func raw(t testing.TB, o socket.Options) (appliance *socket.Conn, peer *websocket.Conn, tcp *net.TCPConn) {
	t.Helper()
	url, accepted := listen(t, o)
	peer, answer, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	must.Succeed(t, err)
	_ = answer.Body.Close() // the body is empty
	appliance = <-accepted
	t.Cleanup(appliance.Drop)
	t.Cleanup(func() { _ = peer.Close() }) // fails if the test has closed it
	return appliance, peer, peer.NetConn().(*net.TCPConn)
}
