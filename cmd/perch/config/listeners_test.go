package config

import "testing"

// TestVCCPPort: the default port for VCCP is 3000, and NamesProgramAt finds another program of this machine in the
// configuration that has the same port.
func TestVCCPPort(t *testing.T) {
	c := Default()
	if c.Skins.VCCP != "localhost:3000" || c.NamesProgramAt(c.Skins.VCCP) {
		t.Errorf("by default it is %q", c.Skins.VCCP)
	}
	for name, is := range map[string]struct {
		relay  Relay
		origin string
		want   bool
	}{
		"AITuberKit at its usual address":  {Relay{Kind: "aituberkit"}, "", true},
		"another program":                  {Relay{Kind: "webhook", URL: "http://[::1]:3000/x"}, "", true},
		"a page":                           {Relay{Kind: "vrchat"}, "http://localhost:3000", true},
		"a page without a port":            {Relay{Kind: "vrchat"}, "http://localhost", false},
		"AITuberKit on another machine":    {Relay{Kind: "aituberkit", URL: "http://192.168.1.9:3000"}, "", false},
		"programs with other ports":        {Relay{Kind: "vrchat"}, "http://localhost:5173", false},
		"a program that Perch looks for":   {Relay{Kind: "veadotube"}, "", false},
		"a page in a file of this machine": {Relay{Kind: "veadotube"}, "file://", false},
	} {
		c.Relays, c.AllowedOrigins = Relays{is.relay}, nil
		if is.origin != "" {
			c.AllowedOrigins = []string{is.origin}
		}
		if got := c.NamesProgramAt(c.Skins.VCCP); got != is.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
