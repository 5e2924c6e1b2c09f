package simrobot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perch/device"
	"perch/device/xiaozhi"
)

// Bootstrap is the result of a check-in. URL, Token and Framing are the WebSocket settings in the
// flash after the check-in; the response may have changed only some of them.
type Bootstrap struct {
	MQTT    string // endpoint of the MQTT server; empty if the transport is WebSocket or the robot is not adopted
	URL     string // URL of the WebSocket
	Token   string
	Framing xiaozhi.Framing

	// Code, Challenge and Message come from the section activation of the response. A robot that
	// receives a code or a challenge waits until its owner adopts it.
	Code, Challenge, Message string

	Upgrade  string   // URL of an image that a real robot would install now; empty for none
	Oddities []string // descriptions of wrong values in the response that the robot ignores
}

// Limits of NVS, the robot's storage for settings.
const (
	maxKey    = 15   // characters in a key
	maxString = 3999 // bytes in a string, without the final zero
)

// readBootstrap processes the response to a check-in like the firmware's ota.cc: sections are
// optional, and keys are compared without case. The firmware stores every string and number under
// websocket and mqtt in NVS. The simulation stores only the values that a robot uses, but returns a
// Crash if NVS cannot hold one of the values.
func (r *Robot) readBootstrap(text []byte) (Bootstrap, error) {
	reply := parseObject(text)
	if reply == nil {
		return Bootstrap{}, errors.New("check in: the response is not a JSON object")
	}
	var b Bootstrap
	mqtt, socket := parseObject(reply.lookup("mqtt")), parseObject(reply.lookup("websocket"))
	if err := errors.Join(checkStorable("mqtt", mqtt), checkStorable("websocket", socket)); err != nil {
		return Bootstrap{}, err
	}
	if err := r.readUpgrade(&b, parseObject(reply.lookup("firmware"))); err != nil {
		return Bootstrap{}, err
	}
	activation := parseObject(reply.lookup("activation"))
	b.Code, _ = activation.text("code")
	b.Challenge, _ = activation.text("challenge")
	b.Message, _ = activation.text("message")
	r.storeWebSocket(&b, socket)
	b.URL, b.Token, b.Framing = r.flash.WebSocket.URL, r.flash.WebSocket.Token, r.flash.WebSocket.framing()
	if b.Code != "" || b.Challenge != "" {
		return b, nil // the firmware ignores the transport of a robot that is not adopted
	}
	r.storeMQTT(mqtt)
	r.byMQTT = mqtt != nil || socket == nil
	if wanted := r.o.Transport; wanted != "" && (wanted == device.MQTT) != r.byMQTT {
		return Bootstrap{}, fmt.Errorf("%w (want %s)", ErrTransport, wanted)
	}
	switch {
	case mqtt == nil && socket == nil:
		return Bootstrap{}, errors.Join(ErrMQTT, errors.New("the response has neither a websocket nor an mqtt section"))
	case r.byMQTT && r.flash.MQTT.Endpoint == "":
		return Bootstrap{}, ErrMQTT
	case r.byMQTT:
		b.MQTT = r.flash.MQTT.Endpoint
		return b, checkEndpoint(b.MQTT)
	}
	return b, checkSocketURL(b.URL)
}

// checkStorable returns a Crash if the firmware would abort when it stores a value of the section.
// A robot that receives such a value aborts at every boot.
func checkStorable(section string, o object) error {
	for _, m := range o {
		s, isString := asString(m.value)
		_, isNumber := asNumber(m.value)
		switch {
		case !isString && !isNumber: // ignored by the firmware
		case len(m.key) > maxKey:
			return crash("the key %q under %q is longer than the 15 characters of NVS: the robot aborts at every boot", m.key, section)
		case len(s) > maxString:
			return crash("%s.%s holds %d bytes, NVS takes 4000 with the final zero: the robot aborts at every boot", section, m.key, len(s))
		}
	}
	return nil
}

// storeWebSocket stores the websocket section of a bootstrap in the flash. The flash keeps its values for
// keys that are missing in the section.
func (r *Robot) storeWebSocket(b *Bootstrap, o object) {
	w := &r.flash.WebSocket
	if s, ok := o.text("url"); ok {
		w.URL = s
	}
	if s, ok := o.text("token"); ok {
		w.Token = s
	}
	if raw := o.lookup("version"); raw != nil {
		n, ok := asNumber(raw)
		if !ok {
			b.Oddities = append(b.Oddities, "websocket.version is not a number and is ignored")
			return
		}
		w.Version = xiaozhi.Framing(n)
	}
}

// readUpgrade reads the firmware section, and sets b.Upgrade if the section offers a newer version or
// forces an upgrade. It compares versions as the firmware does, and returns a Crash if the firmware
// would abort.
func (r *Robot) readUpgrade(b *Bootstrap, o object) error {
	version, hasVersion := o.text("version")
	link, hasURL := o.text("url")
	if !hasVersion || !hasURL {
		return nil
	}
	offered, err := parseVersion(version)
	if err != nil {
		return err
	}
	running, err := parseVersion(r.firmware.version)
	if err != nil {
		return err
	}
	force, _ := asNumber(o.lookup("force"))
	// The first part that differs decides. If none differs, the longer version is newer.
	if slices.Compare(offered, running) > 0 || force == 1 {
		b.Upgrade = link
		if link == "" {
			b.Oddities = append(b.Oddities, "firmware "+version+" is newer, but has no url")
		}
	}
	if raw := string(o.lookup("force")); raw == "true" {
		b.Oddities = append(b.Oddities, "firmware.force must be the number 1; true is ignored")
	}
	return nil
}

// parseVersion splits a version into numbers as the firmware does. It returns a Crash if the
// firmware's std::stoi would throw.
func parseVersion(text string) ([]int, error) {
	var parts []int
	// Like std::getline this returns no part for an empty text or after a final dot.
	for part, rest := "", text; rest != ""; {
		part, rest, _ = strings.Cut(rest, ".")
		digits := strings.TrimLeft(part, " \t\n\v\f\r")
		end := strings.TrimLeft(strings.TrimLeft(digits, "+-"), "0123456789")
		n, err := strconv.ParseInt(strings.TrimSuffix(digits, end), 10, 32)
		if err != nil {
			return nil, crash("firmware.version %q: std::stoi throws at the part %q, and the robot aborts at every boot", text, part)
		}
		parts = append(parts, int(n))
	}
	return parts, nil
}

// checkSocketURL checks the URL of a WebSocket. The firmware takes the text after the first colon
// behind the scheme for the port, even if that colon is in the path. In that case checkSocketURL
// returns a Crash.
func checkSocketURL(text string) error {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		return fmt.Errorf("check in: websocket.url %q is not a URL", text)
	}
	colon, slash := strings.IndexByte(rest, ':'), strings.IndexByte(rest, '/')
	if colon > slash && slash >= 0 {
		return crash("websocket.url %q has no port but a colon in its path: the robot takes the text after the colon for the port", text)
	}
	return nil
}

// checkEndpoint returns a Crash if the endpoint of an MQTT server has an invalid port. The firmware
// passes the text after the first colon to std::stoi.
func checkEndpoint(text string) error {
	_, port, hasPort := strings.Cut(text, ":")
	if n, err := strconv.Atoi(port); hasPort && (err != nil || n <= 0 || n > 65535) {
		return crash("mqtt.endpoint %q: std::stoi throws at its port, or the robot connects nowhere", text)
	}
	return nil
}

// quote returns s as a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // cannot fail for a string
	return string(b)
}
