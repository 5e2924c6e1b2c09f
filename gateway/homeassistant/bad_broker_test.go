package homeassistant

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

type conn = net.Conn

// serve answers connections with a script, until the test ends.
func serve(t *testing.T, script func(conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 1024)
			if _, err := c.Read(buffer); err == nil { // CONNECT
				script(c)
			}
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func freePortText(t *testing.T) string { return fmt.Sprint(freePort(t)) }

func portOf(t *testing.T, address string) (port int) {
	_, text, err := net.SplitHostPort(address)
	if err == nil {
		_, err = fmt.Sscan(text, &port)
	}
	if err != nil {
		t.Fatal(err)
	}
	return port
}
