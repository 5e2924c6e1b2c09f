package robot

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/device"
	"perch/device/xiaozhi"
)

// BenchmarkConnected is the memory of robots that are connected by MQTT and have listed
// the tools of a Stack-chan, of which their registry keeps nothing.
func BenchmarkConnected(b *testing.B) {
	const robots = 500
	var list []string
	for i := range 11 {
		list = append(list, fmt.Sprintf(`{"name":"self.robot.tool_%d","description":%q,"inputSchema":{"type":"object","properties":{`+
			`"yaw":{"type":"integer","default":0,"minimum":-128,"maximum":128},"pitch":{"type":"integer","minimum":0,"maximum":90}},"required":["pitch"]}}`,
			i, strings.Repeat("What it does. ", 20)))
	}
	tools := []byte(`{"tools":[` + strings.Join(list, ",") + `]}`)
	for b.Loop() {
		s, _, address := mqttServer(b, answer("Yes."), &scriptedRecognizer{})
		before := inUse()
		for i := range robots {
			conn := connectedRobot(b, address, device.ID(fmt.Sprintf("a0b1c2%06x", i)), tools)
			defer conn.Close()
		}
		for s.Connected() < robots {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(inUse()-before)/robots/1024, "kB-each")
	}
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// connectedRobot is a connection of a robot that has listed its tools.
func connectedRobot(b *testing.B, address string, id device.ID, tools []byte) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.CleanSession, hello.Keepalive = "MQTT", 4, true, 60
	hello.ClientIdentifier, hello.UsernameFlag, hello.Username = "uuid", true, string(id)
	if err := hello.Write(conn); err != nil {
		b.Fatal(err)
	}
	for {
		p, err := packets.ReadPacket(conn)
		if err != nil {
			b.Fatal(err)
		}
		m, is := p.(*packets.PublishPacket)
		if !is || !bytes.Contains(m.Payload, []byte("tools/list")) {
			continue
		}
		answer := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		answer.TopicName = MQTTTopic
		answer.Payload = xiaozhi.AppendFromRobot(nil, "", xiaozhi.FromMCP{Payload: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"result":%s}`, tools)})
		if err := answer.Write(conn); err != nil {
			b.Fatal(err)
		}
		return conn
	}
}
