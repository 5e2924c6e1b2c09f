package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// check finds invalid values. It reads files
// the configuration names, and touches nothing else.
func (k *checker) check(c *Config) error {
	k.addresses(c)
	k.tls(c.TLS, c.Robots.MQTT.TLS)
	k.identity(c)
	k.oneOf("adoption", c.Adoption, "open", "code")
	k.oneOf("mood", c.Mood, "on", "off")
	k.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	if c.Robots.Framing < 1 || c.Robots.Framing > 3 {
		k.fault("robots.framing", fmt.Errorf("the binary framings are 1, 2 and 3, not %d", c.Robots.Framing))
	}
	k.robots(c)
	k.between("robots.keep_turns", c.Robots.KeepTurns, 0, 10000)
	if s := time.Duration(c.Speech.Silence); s < 200*time.Millisecond || s > 3*time.Second {
		k.fault("speech.silence", fmt.Errorf("an utterance ends after 200ms to 3s of silence, not %s", s))
	}
	if c.Wyoming.Listen != "" {
		k.listen("wyoming.listen", c.Wyoming.Listen)
	}
	k.between("memory.most", c.Memory.Most, 10, 2000)
	k.between("memory.memory_tokens", c.Memory.MemoryTokens, 100, 100_000)
	k.between("memory.history_tokens", c.Memory.HistoryTokens, 100, 100_000)
	if c.Diary.Keep != 0 {
		k.between("diary.keep", c.Diary.Keep, 100, 100_000)
	}
	k.mqtt(c)
	k.bridge(c.Bridge)
	k.behaviours(c)
	k.skins(c)
	k.skills(c)
	k.characters(c)
	k.relays(c)
	_, err := c.Web.Proxies()
	k.each("web.ingress", err)
	if c.Web.IngressListen != "" {
		k.listen("web.ingress_listen", c.Web.IngressListen)
		if len(c.Web.Ingress) == 0 {
			k.fault("web.ingress_listen", errors.New("nobody may come there while web.ingress is empty; it is to have the proxy's address"))
		}
	}
	_, err = c.Firmware.Signer()
	k.failed("firmware.public_key", err)
	k.engines(c)
	k.serviceReads(c)
	if len(k.found) > 0 {
		return k.found
	}
	return nil
}

func (k *checker) fault(path string, why error) {
	unread := func(of string) bool { return of == section(path) || strings.HasPrefix(of, path+".") }
	if slices.ContainsFunc(k.unread, unread) {
		return
	}
	k.found = append(k.found, k.at(path, why))
}

// under returns the keys that were set below a path, sorted.
func (k *checker) under(path string) []string {
	set := map[string]bool{}
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(k.lines)), maps.Keys(k.env)) {
		if rest, below := strings.CutPrefix(key, path+"."); below {
			first, _, _ := strings.Cut(rest, ".")
			set[first] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (k *checker) oneOf(path, value string, allowed ...string) {
	k.chosen(path, allowed)
	if !slices.Contains(allowed, value) {
		k.fault(path, fmt.Errorf("it is one of %s, not %q", strings.Join(allowed, ", "), value))
	}
}

// chosen notes what a key may be, for those who are to choose.
func (k *checker) chosen(path string, among []string) {
	if k.choices == nil {
		k.choices = map[string][]string{}
	}
	k.choices[path] = among
}

func (k *checker) between(path string, n, least, most int) {
	if n < least || n > most {
		k.fault(path, fmt.Errorf("it is %d to %d, not %d", least, most, n))
	}
}

func (k *checker) addresses(c *Config) {
	if len(c.Listen) == 0 {
		k.fault("listen", errors.New("at least one address is needed, or no robot can come"))
	}
	for i, a := range c.Listen {
		k.listen(fmt.Sprintf("listen.%d", i), a)
	}
	for i, a := range c.Local {
		k.loopback(fmt.Sprintf("local.%d", i), a)
	}
	if c.Debug.Listen != "" {
		k.loopback("debug.listen", c.Debug.Listen)
	}
	if c.PublicURL != "" {
		k.failed("public_url", checkPublicURL(c.PublicURL))
	}
	for i, o := range c.AllowedOrigins {
		if o == "file://" {
			continue // what a page that is a file says of itself to a WebSocket, as desktop programs do that are made with Electron
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			k.fault(fmt.Sprintf("allowed_origins.%d", i),
				errors.New("it is no origin such as https://panel.example: a scheme, a name and perhaps a port"))
		}
	}
}

// loopback checks an address that is served without a key.
func (k *checker) loopback(path, address string) {
	_, err := splitAddress(address)
	if err == nil && !Loopback(address) {
		err = fmt.Errorf("%q is served without a key and so must be a loopback address", address)
	}
	k.failed(path, err)
}

// Loopback reports whether only programs of this machine reach an address to listen on.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// listen checks an address to listen on.
func (k *checker) listen(path, a string) {
	_, err := splitAddress(a)
	k.failed(path, err)
}

// splitAddress checks "host:port" and returns the host.
func splitAddress(a string) (host string, err error) {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return "", fmt.Errorf("%q is no address such as :8003 or 192.168.1.5:8003", a)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("%q has no port from 0 to 65535", a)
	}
	return host, nil
}

// checkPublicURL accepts only what the firmware can use: plain http, a port,
// nothing behind it.
func checkPublicURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		// what it holds may be a password
		return errors.New("it is no address a robot can use, such as http://192.168.1.5:8003: http, a name or address, and a port")
	}
	return nil
}

var label = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`) })

func (k *checker) identity(c *Config) {
	if !label().MatchString(c.Name) {
		k.fault("name", fmt.Errorf("%q is no name for the network: lower-case letters, digits and dashes, at most 40", c.Name))
	}
	if _, err := c.Zone(); err != nil {
		k.fault("timezone", fmt.Errorf("%q is no time zone such as Europe/Berlin", c.Timezone))
	}
	if n := len(strings.TrimSpace(c.Persona.Name)); n == 0 || n > 60 {
		k.fault("persona.name", errors.New("a name has 1 to 60 characters"))
	}
}

// Zone is the household's time zone: the machine's where none is set.
func (c *Config) Zone() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(c.Timezone)
}

// Level is the log level.
func (c *Config) Level() slog.Level {
	var l slog.Level
	// One of four words, by check.
	_ = l.UnmarshalText([]byte(c.Log.Level))
	return l
}
