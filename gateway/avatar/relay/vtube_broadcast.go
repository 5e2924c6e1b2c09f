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

// listenFor is how long to wait for a broadcast. VTube Studio sends one every two seconds.
const listenFor = 2500 * time.Millisecond

// findVTube waits for a broadcast of VTube Studio, and returns its address if that is on this
// machine, or else the address on another machine, or neither. It hears nothing while another
// program has the port.
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
		case at != "" && (elsewhere == "" || at < elsewhere): // a stable choice
			elsewhere = at
		}
	}
}

// ofThisMachine reports whether ip is an address of this machine at present.
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

// hostOf returns the IP address in a URL, or nil.
func hostOf(address string) net.IP {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return net.ParseIP(u.Hostname())
}

// leastPort is the first unprivileged port.
const leastPort = 1024

// vtubeAt returns the address that a broadcast announces: a port on the sending machine, which
// must be on the local network. It returns "" if the API is switched off.
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
