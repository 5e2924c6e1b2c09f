package mdns

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func addrs(list ...string) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, s := range list {
		out[i] = netip.MustParseAddr(s)
	}
	return out
}

func newTestLink(name string, ips ...string) link {
	var list []net.Addr
	for _, ip := range addrs(ips...) {
		list = append(list, &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(24, ip.BitLen())})
	}
	return newLink(net.Interface{Index: 1, Name: name}, list)
}

func TestChooseInterfaces(t *testing.T) {
	const usable = net.FlagUp | net.FlagMulticast | net.FlagBroadcast
	all := []net.Interface{
		{Name: "lo", Flags: net.FlagUp | net.FlagLoopback},
		{Name: "eth0", Flags: usable}, {Name: "wlan0", Flags: usable}, {Name: "br0", Flags: usable},
		{Name: "end1", Flags: net.FlagMulticast}, // down
		{Name: "can0", Flags: net.FlagUp},        // no multicast
		{Name: "ppp0", Flags: usable | net.FlagPointToPoint},
		{Name: "docker0", Flags: usable}, {Name: "veth12ab", Flags: usable}, {Name: "br-4f00", Flags: usable},
		{Name: "tailscale0", Flags: usable}, {Name: "virbr0", Flags: usable}, {Name: "cni0", Flags: usable},
		{Name: "flannel.1", Flags: usable}, {Name: "ztabc", Flags: usable}, {Name: "hassio", Flags: usable},
	}
	tests := map[string]struct{ names, want []string }{
		"all that fit":           {nil, []string{"eth0", "wlan0", "br0"}},
		"named":                  {[]string{"wlan0"}, []string{"wlan0"}},
		"named container bridge": {[]string{"docker0", "nothing"}, []string{"docker0"}},
		"named but down":         {[]string{"end1"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, i := range chooseInterfaces(all, tt.names) {
				got = append(got, i.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("chose %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNewLinkChoosesAddresses(t *testing.T) {
	tests := map[string]struct {
		have   []string
		v4, v6 []string
	}{
		"IPv4 only":         {[]string{"192.168.1.2"}, []string{"192.168.1.2"}, nil},
		"routable wins":     {[]string{"fe80::1", "2001:db8::1", "fd00::1"}, nil, []string{"2001:db8::1", "fd00::1"}},
		"link-local only":   {[]string{"10.0.0.1", "fe80::1"}, []string{"10.0.0.1"}, []string{"fe80::1"}},
		"nothing of use":    {[]string{"127.0.0.1", "::1"}, nil, nil},
		"IPv4 mapped to v6": {[]string{"::ffff:10.0.0.1"}, []string{"10.0.0.1"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newTestLink("eth0", tt.have...)
			if want := addrs(slices.Concat(tt.v4, tt.v6)...); !slices.Equal(l.addrs, want) {
				t.Errorf("%v, want %v", l.addrs, want)
			}
		})
	}
}

func TestLinkEqual(t *testing.T) {
	a := newTestLink("eth0", "192.168.1.2", "fd00::1")
	if !a.equal(newTestLink("eth0", "192.168.1.2", "fd00::1")) {
		t.Error("the same link counts as changed")
	}
	for _, b := range []link{newTestLink("eth1", "192.168.1.2", "fd00::1"), newTestLink("eth0", "192.168.1.3", "fd00::1"),
		newTestLink("eth0", "192.168.1.2")} {
		if a.equal(b) {
			t.Errorf("%+v counts as unchanged", b)
		}
	}
}
