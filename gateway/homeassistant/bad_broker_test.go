package homeassistant

import (
	"net"
	"runtime"
	"sync"
	"testing"

	"perch/must"
	"perch/waittest"
)

// serve calls script with each connection after it has received some bytes, until the test ends. It returns its address.
func serve(t *testing.T, script func(net.Conn)) (address string) {
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// TestABrokerThatAnnouncesMuch tests that no memory is allocated for the length that a broker announces for a packet.
func TestABrokerThatAnnouncesMuch(t *testing.T) {
	address := serve(t, func(c net.Conn) {
		_, _ = c.Write([]byte{0x20, 2, 0, 0})
		_, _ = c.Write([]byte{0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1, 't'}) // a header for 268 million bytes, and three of them
	})
	h := newHarness()
	h.options.Broker = "mqtt://" + address
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, end := h.run(t)
	waittest.For(t, "the connection is lost over it", func() bool { return h.log.Lines("MQTT is disconnected") > 0 })
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d MB", took>>20)
	}
	end()
}
