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

// broadcastTimeout is how long to wait for a broadcast. VTube Studio sends one every two seconds.
const broadcastTimeout = 2500 * time.Millisecond

// findVTube waits for broadcasts of VTube Studio. found is an address on this machine that was
// announced. If only other machines have sent broadcasts, found is empty, and elsewhere is an address
// on one of these machines. Both are empty if no broadcast was received, for example because another
// program uses the port.
func findVTube(ctx context.Context, broadcasts string, isLocal func(net.IP) bool) (found, elsewhere string) {
	ctx, cancel := context.WithTimeout(ctx, broadcastTimeout)
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
		sender, ok := from.(*net.UDPAddr)
		if !ok {
			continue
		}
		address := parseBroadcast(packet[:n], sender.IP)
		switch {
		case address != "" && isLocal(sender.IP):
			return address, ""
		case address != "" && (elsewhere == "" || address < elsewhere): // the smallest address, so that the result does not alternate
			elsewhere = address
		}
	}
}

// isThisMachine reports whether ip is currently an address of this machine.
func isThisMachine(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(ip)
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

// minPort is the first unprivileged port.
const minPort = 1024

// parseBroadcast returns the address that a broadcast announces: the announced port at the sender's
// IP address. It returns "" if the packet is not a broadcast of VTube Studio, if the API is switched
// off, if the port is privileged, or if the sender is not on the local network.
func parseBroadcast(packet []byte, sender net.IP) (address string) {
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
	if local := sender.IsLoopback() || sender.IsPrivate() || sender.IsLinkLocalUnicast(); !local || m.Data.Port < minPort {
		return ""
	}
	return "ws://" + net.JoinHostPort(sender.String(), strconv.Itoa(int(m.Data.Port)))
}
