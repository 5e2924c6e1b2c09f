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

// Bootstrap is the part of a check-in's reply that a robot keeps.
type Bootstrap struct {
	MQTT    string // endpoint, if the robot uses MQTT
	URL     string // of the WebSocket, as in the flash now
	Token   string
	Framing xiaozhi.Framing

	Code, Challenge, Message string // of activation: with a code or a challenge the robot waits

	Upgrade  string   // URL of an image that a real robot would install now; this one does with Options.Upgrades
	Oddities []string // what the robot ignores
}

const (
	longestKey    = 15   // of NVS, in characters
	longestString = 3999 // of NVS, in bytes, without the closing zero
)

// readBootstrap processes a reply like ota.cc: sections are optional,
// keys are compared without case, and every string and number under websocket
// and mqtt is stored in the flash under its own key.
func (r *Robot) readBootstrap(text []byte) (Bootstrap, error) {
	reply := parseObject(text)
	if reply == nil {
		return Bootstrap{}, errors.New("check in: the reply is not a JSON object")
	}
	var b Bootstrap
	mqtt, socket := parseObject(reply.lookup("mqtt")), parseObject(reply.lookup("websocket"))
	if err := errors.Join(storable("mqtt", mqtt), storable("websocket", socket)); err != nil {
		return Bootstrap{}, err
	}
	if err := r.upgrade(&b, parseObject(reply.lookup("firmware"))); err != nil {
		return Bootstrap{}, err
	}
	activation := parseObject(reply.lookup("activation"))
	b.Code, _ = activation.text("code")
	b.Challenge, _ = activation.text("challenge")
	b.Message, _ = activation.text("message")
	r.storeSection(&b, socket)
	b.URL, b.Token, b.Framing = r.flash.WebSocket.URL, r.flash.WebSocket.Token, r.flash.WebSocket.framing()
	if b.Code != "" || b.Challenge != "" {
		return b, nil // before it has a transport
	}
	r.storeMQTT(mqtt)
	r.byMQTT = mqtt != nil || socket == nil
	if wanted := r.o.Transport; wanted != "" && (wanted == device.MQTT) != r.byMQTT {
		return Bootstrap{}, fmt.Errorf("%w (want %s)", ErrTransport, wanted)
	}
	switch {
	case mqtt == nil && socket == nil:
		return Bootstrap{}, errors.Join(ErrMQTT, errors.New("the reply has neither a websocket nor an mqtt section"))
	case r.byMQTT && r.flash.MQTT.Endpoint == "":
		return Bootstrap{}, ErrMQTT
	case r.byMQTT:
		b.MQTT = r.flash.MQTT.Endpoint
		return b, checkEndpoint(b.MQTT)
	}
	return b, checkSocketURL(b.URL)
}

// storable refuses values that abort the firmware when it stores them, at this
// boot and every later one.
func storable(section string, o object) error {
	for _, m := range o {
		s, isString := asString(m.value)
		_, isNumber := asNumber(m.value)
		switch {
		case !isString && !isNumber: // skipped silently
		case len(m.key) > longestKey:
			return crash("the key %q under %q is longer than the 15 characters of NVS: the robot aborts at every boot", m.key, section)
		case len(s) > longestString:
			return crash("%s.%s holds %d bytes, NVS takes 4000 with the closing zero: the robot aborts at every boot", section, m.key, len(s))
		}
	}
	return nil
}

// storeSection stores the section. Keys that are missing stay as they were.
func (r *Robot) storeSection(b *Bootstrap, o object) {
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

// upgrade compares versions as the firmware does. It aborts where std::stoi throws.
func (r *Robot) upgrade(b *Bootstrap, o object) error {
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
	// The first part that differs decides, and else the longer version is newer.
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

func parseVersion(text string) ([]int, error) {
	var parts []int
	// std::getline returns no part for an empty text or after a final dot.
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

// checkSocketURL parses a URL as the firmware does: the port follows the first
// colon after the scheme, wherever that is.
func checkSocketURL(text string) error {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		return fmt.Errorf("check in: websocket.url %q is not a URL", text)
	}
	colon, slash := strings.IndexByte(rest, ':'), strings.IndexByte(rest, '/')
	if colon > slash && slash >= 0 {
		return crash("websocket.url %q has no port but a colon later on: the robot takes what follows it for the port", text)
	}
	return nil
}

// checkEndpoint parses an endpoint as the firmware does: std::stoi gets what
// follows the first colon.
func checkEndpoint(text string) error {
	_, port, has := strings.Cut(text, ":")
	if n, err := strconv.Atoi(port); has && (err != nil || n <= 0 || n > 65535) {
		return crash("mqtt.endpoint %q: std::stoi throws at its port, or the robot connects nowhere", text)
	}
	return nil
}

// quote returns a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // never fails for a string
	return string(b)
}
