package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"perch/gateway/mdns"
)

// TestInstance: further services have the appliance's name, and the host of the first address that others can reach.
func TestInstance(t *testing.T) {
	for name, is := range map[string]struct {
		o         Options
		host      string
		announced bool
	}{
		"everywhere":     {Options{MDNS: true, Listen: []string{"127.0.0.1:8003", "[::]:8003"}}, "::", true},
		"one address":    {Options{MDNS: true, Listen: []string{"192.168.1.5:8003"}}, "192.168.1.5", true},
		"this machine":   {Options{MDNS: true, Listen: []string{"127.0.0.1:8003"}}, "", false},
		"without a name": {Options{Listen: []string{"192.168.1.5:8003"}}, "192.168.1.5", false},
	} {
		is.o.Name, is.o.ID = "perch", "c0ffee"
		if instance, host, announced := New(is.o).Instance(); instance != "perch-c0ffee" || host != is.host || announced != is.announced {
			t.Errorf("%s: %q, %q, %t", name, instance, host, announced)
		}
	}
}

// TestANameThatAnotherMachineHas: if another machine uses the configured name, the condition is a failure whose
// note contains the machine's address and advice.
func TestANameThatAnotherMachineHas(t *testing.T) {
	taken := mdns.Status{Host: "perch-2.local", Wanted: "perch.local", By: mdns.ByPerch, Rival: netip.MustParseAddr("192.168.1.7")}
	part := nameCondition(taken)
	for _, word := range []string{"perch-2.local", "(192.168.1.7) has perch.local", "another name"} {
		if part.OK || part.Vital || !strings.Contains(part.Note, word) {
			t.Errorf("%+v does not say %q", part, word)
		}
	}
	if own := nameCondition(mdns.Status{Host: "perch.local", Wanted: "perch.local", By: mdns.BySystem}); !own.OK ||
		own.Note != "perch.local, answered by system" {
		t.Errorf("%+v", own)
	}
	for reason, cure := range map[error]string{mdns.ErrNoMulticast: "connect this machine to a network", errors.New("not started"): "IP address"} {
		waits := nameCondition(mdns.Status{Host: "perch.local", Wanted: "perch.local", Reason: reason})
		if waits.OK || !strings.HasPrefix(waits.Note, reason.Error()+"; ") || !strings.Contains(waits.Note, cure) {
			t.Errorf("%+v", waits)
		}
	}
}
