package relay

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"perch/limit"
)

// Bounds of waiting for a broadcast, which VTube Studio sends each two seconds.
const listenFor = 2500 * time.Millisecond

// findVTube waits for VTube Studio to say where it is, and returns its address where it is
// on this machine, or else where another machine of the network says that it is with it, or
// nothing. Another program may have the port; then nothing is heard.
func findVTube(ctx context.Context, broadcasts string, here func(net.IP) bool) (found, elsewhere string) {
	ctx, cancel := context.WithTimeout(ctx, listenFor)
	defer cancel()
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", broadcasts)
	if err != nil {
		return "", ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	packet := make([]byte, limit.Data)
	for {
		n, from, err := conn.ReadFrom(packet)
		if err != nil {
			return "", elsewhere
		}
		sender, is := from.(*net.UDPAddr)
		if !is {
			continue
		}
		at := vtubeAt(packet[:n], sender.IP)
		switch {
		case at != "" && here(sender.IP):
			return at, ""
		case at != "" && (elsewhere == "" || at < elsewhere): // the same of several each time
			elsewhere = at
		}
	}
}

// ofThisMachine reports whether an address is one of this machine, as it has them now.
func ofThisMachine(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		network, is := a.(*net.IPNet)
		return is && network.IP.Equal(ip)
	})
}

// hostOf is the IP address that a URL names, or nil.
func hostOf(address string) net.IP {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return net.ParseIP(u.Hostname())
}

// leastPort is the first port that a program of a user listens at.
const leastPort = 1024

// vtubeAt is where a broadcast says that VTube Studio listens: at the machine that has sent
// it, which is one of this network. It says nothing if its user has switched its API off.
func vtubeAt(packet []byte, sender net.IP) (at string) {
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
