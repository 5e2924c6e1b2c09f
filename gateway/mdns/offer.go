package mdns

import (
	"fmt"
	"strings"
)

// Offer is a further service on this machine that is announced beside [Service], under the same instance name.
type Offer struct {
	// Type is the DNS-SD type: [Wyoming], say.
	Type string
	// Port is the TCP or UDP port it is served on. It must answer before it is announced: Home Assistant asks at once.
	Port int
	// TXT is published with it, each string a "key=value"; nil is none.
	TXT []string
}

// maxTXT is how long a TXT record should be at most (RFC 6763 section 6.2), in bytes, so that an answer with all its
// records fits one packet.
const maxTXT = 400

// txt lists the TXT strings. Where there is none, the record holds one empty string, for it may not be empty (RFC 6763
// section 6.1).
func (o Offer) txt() []string {
	if len(o.TXT) == 0 {
		return []string{""}
	}
	return o.TXT
}

// offers are all the services to announce; the appliance's own is the first.
func (o Options) offers() []Offer {
	own := Offer{Type: Service, Port: o.Port, TXT: []string{
		"ota=/xiaozhi/ota/", "ws=/xiaozhi/v1/", "version=" + o.Version, "id=" + o.ID,
	}}
	return append([]Offer{own}, o.Also...)
}

// validateOffers refuses what zeroconf could not pack, and one type twice: an instance name is unique in its type.
func (o Options) validateOffers() error {
	types := map[string]bool{Service: true}
	for _, also := range o.Also {
		switch {
		case !isType(also.Type):
			return fmt.Errorf(`mdns service %q: use "_name._tcp" or "_name._udp", the name of at most 15 letters, digits and hyphens`, also.Type)
		case types[also.Type]:
			return fmt.Errorf("mdns service %s is given twice", also.Type)
		case also.Port < 1 || also.Port > 65535:
			return fmt.Errorf("mdns service %s: port %d: use 1 to 65535", also.Type, also.Port)
		}
		types[also.Type] = true
		length := 0
		for _, text := range also.TXT {
			if key, _, _ := strings.Cut(text, "="); key == "" || !isPrintable(text) || len(text) > 255 {
				return fmt.Errorf("mdns service %s: TXT %q: use key=value of at most 255 printable ASCII characters", also.Type, text)
			}
			length += 1 + len(text)
		}
		if length > maxTXT {
			return fmt.Errorf("mdns service %s: TXT of %d bytes: use at most %d", also.Type, length, maxTXT)
		}
	}
	return nil
}

// isType reports whether s is a service type (RFC 6335 section 5.1) in lower case, of a protocol that DNS-SD knows (RFC
// 6763 section 7).
func isType(s string) bool {
	name, protocol, found := strings.Cut(s, ".")
	name, underlined := strings.CutPrefix(name, "_")
	return found && underlined && isLabel(name) && len(name) <= 15 && name == strings.ToLower(name) &&
		(protocol == "_tcp" || protocol == "_udp")
}
