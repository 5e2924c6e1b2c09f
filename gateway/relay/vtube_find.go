package relay

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"time"
)

// Bounds of waiting for a broadcast, which VTube Studio sends each two seconds.
const (
	listenFor     = 2500 * time.Millisecond
	mostBroadcast = 4 << 10 // bytes
)

// findVTube waits for VTube Studio to say in the local network where it is, and returns
// its address, or nothing. Another program may have the port; then nothing is heard.
func findVTube(ctx context.Context, broadcasts string) (url string) {
	ctx, cancel := context.WithTimeout(ctx, listenFor)
	defer cancel()
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", broadcasts)
	if err != nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	packet := make([]byte, mostBroadcast)
	for {
		n, from, err := conn.ReadFrom(packet)
		if err != nil {
			return ""
		}
		if sender, is := from.(*net.UDPAddr); is {
			if url := vtubeAt(packet[:n], sender.IP); url != "" {
				return url
			}
		}
	}
}

// leastPort is the first port that a program of a user listens at.
const leastPort = 1024

// vtubeAt is where a broadcast says that VTube Studio listens: at the machine that has sent
// it, which is one of this network. It says nothing if its user has switched its API off.
func vtubeAt(packet []byte, sender net.IP) (url string) {
	var m struct {
		API  string `json:"apiName"`
		Type string `json:"messageType"`
		Data struct {
			Active bool   `json:"active"`
			Port   uint16 `json:"port"`
		} `json:"data"`
	}
	if json.Unmarshal(packet, &m) != nil || m.API != vtubeAPI || m.Type != "VTubeStudioAPIStateBroadcast" || !m.Data.Active {
		return ""
	}
	if near := sender.IsLoopback() || sender.IsPrivate() || sender.IsLinkLocalUnicast(); !near || m.Data.Port < leastPort {
		return ""
	}
	return "ws://" + net.JoinHostPort(sender.String(), strconv.Itoa(int(m.Data.Port)))
}
