// Package supervisor is a client of Home Assistant's Supervisor, which runs Perch as an app:
// it returns Home Assistant's MQTT broker, announces Perch to Home Assistant, and knows
// where the Supervisor proxies Home Assistant's API.
package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/secret"
)

const (
	// Home is the Supervisor's URL for apps.
	Home = "http://supervisor"
	// Ingress is the source address of its requests for an app's page.
	Ingress = "172.30.32.2"
	// Gateway is the host's address in the network of apps. An app on the host's network is
	// reached there.
	Gateway = "172.30.32.1"

	answerWithin = 10 * time.Second
)

// Options of a Client.
type Options struct {
	URL   string // usually Home
	Token string
	// Within bounds a whole answer; 0 is 10 s.
	Within time.Duration
}

// FromEnvironment returns the options of a program started by the Supervisor, which gives
// each app its own token. SUPERVISOR_API is the variable with which apps are tested.
func FromEnvironment(environ []string) (o Options, is bool) {
	for _, one := range environ {
		switch name, value, _ := strings.Cut(one, "="); name {
		case "SUPERVISOR_TOKEN":
			o.Token = strings.TrimSpace(value)
		case "SUPERVISOR_API":
			o.URL = strings.TrimRight(value, "/")
		}
	}
	o.URL = cmp.Or(o.URL, Home)
	return o, o.Token != ""
}

// Core returns the URL at which the Supervisor proxies Home Assistant's API. It accepts the
// Supervisor's token.
func (o Options) Core() string { return o.URL + "/core" }

// Client is a client of one Supervisor. It is safe for concurrent use.
type Client struct {
	remote.Server
	o   Options
	web *remote.Client
}

// New returns a client. It opens no connection.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil {
		return nil, errors.New("SUPERVISOR_API is no address such as " + Home)
	}
	o.Within = cmp.Or(o.Within, answerWithin)
	transport := remote.NewTransport()
	transport.Proxy, transport.ForceAttemptHTTP2 = nil, false // on this machine
	transport.DialContext = (&net.Dialer{Timeout: o.Within}).DialContext
	c := &Client{o: o, Server: remote.Server{Service: "Home Assistant's Supervisor", Address: remote.Address(base), Key: o.Token,
		Setting: "the app's token", Check: "the version of the app and of the Supervisor"}}
	c.web = remote.NewClient(remote.Options{Server: c.Server, Base: base, Transport: transport})
	return c, nil
}

// Close cancels running calls.
func (c *Client) Close() { c.web.Close() }

// call makes a request. The Supervisor wraps each of its answers.
func (c *Client) call(ctx context.Context, method, path string, body, data any) error {
	text, err := c.web.Fetch(ctx, remote.Request{Method: method, Path: path, JSON: body, Within: c.o.Within, Repeatable: true}, limit.Body)
	if err != nil {
		return err
	}
	return c.unwrap(text, data)
}

// unwrap decodes an answer: {"result":"ok","data":{...}}.
func (c *Client) unwrap(text []byte, data any) error {
	var answer struct {
		Result  string          `json:"result"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Result != "ok" && answer.Result != "error" {
		return c.Fault("answers with something that is not of its API")
	}
	if answer.Result == "error" {
		return c.Fault("has failed: " + c.Quote(answer.Message))
	}
	if data == nil {
		return nil
	}
	if len(answer.Data) == 0 || json.Unmarshal(answer.Data, data) != nil {
		return c.Fault("answers with other data than its API has there")
	}
	return nil
}

// Broker is Home Assistant's MQTT broker.
type Broker struct {
	URL            string // "mqtt://core-mosquitto:1883"
	User, Password string
}

// ErrNoBroker reports that Home Assistant has no broker.
var ErrNoBroker = errors.New("no app of Home Assistant offers an MQTT broker")

// MQTT returns the broker that an app of Home Assistant offers. The error wraps ErrNoBroker
// only if the Supervisor said so.
func (c *Client) MQTT(ctx context.Context) (Broker, error) {
	var s service
	err := c.call(ctx, http.MethodGet, "services/mqtt", nil, &s)
	var refused *remote.Fault
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Reason, "not enabled") {
		return Broker{}, ErrNoBroker
	}
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return Broker{}, c.Faultf("%s does not let this app know of the MQTT broker (%s); its config.yaml has to have services: [mqtt:want]",
			c.Name(), c.StatusText(refused.Refusal))
	}
	if err != nil {
		return Broker{}, err
	}
	b, ok := s.broker()
	if !ok {
		return Broker{}, c.Fault("names an MQTT broker without a host or a port that can be used; see the app that offers it")
	}
	return b, nil
}

// service is the Supervisor's description of a broker. It also names the app that offers it,
// as addon or app.
type service struct {
	Host     string `json:"host"`
	Port     port   `json:"port"`
	SSL      bool   `json:"ssl"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// host matches a name or an address, as in a URL.
var host = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`) })

func (s service) broker() (Broker, bool) {
	if s.Port == 0 || !host().MatchString(s.Host) && net.ParseIP(s.Host) == nil {
		return Broker{}, false
	}
	scheme := "mqtt"
	if s.SSL {
		scheme = "mqtts"
	}
	at := net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port)))
	return Broker{URL: scheme + "://" + at, User: s.Username, Password: s.Password}, true
}

// port is a TCP port. The documentation has it as a string, the Supervisor as a number.
type port uint16

// UnmarshalJSON implements json.Unmarshaler.
func (p *port) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 16)
	*p = port(n)
	return err
}

// uuid matches the id of an announcement.
var uuid = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F-]{1,64}$`) })

// Announce announces a service of this app to Home Assistant, and returns the announcement's
// id. It replaces an earlier announcement of the same service.
func (c *Client) Announce(ctx context.Context, service string, config map[string]any) (id string, err error) {
	var data struct{ UUID string }
	err = c.call(ctx, http.MethodPost, "discovery", map[string]any{"service": service, "config": config}, &data)
	var refused *remote.Fault
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return "", c.Faultf("%s takes no announcement of %s from this app (%s); its config.yaml has to list that in discovery", c.Name(), service,
			c.StatusText(refused.Refusal))
	case err != nil:
		return "", err
	case !uuid().MatchString(data.UUID):
		return "", c.Fault("answers with other data than its API has there")
	}
	return data.UUID, nil
}

// Withdraw removes an announcement, if it exists.
func (c *Client) Withdraw(ctx context.Context, id string) error {
	if !uuid().MatchString(id) {
		return nil // not an announcement's id
	}
	err := c.call(ctx, http.MethodDelete, "discovery/"+id, nil, nil)
	var refused *remote.Fault
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// HomeToken returns the token for the Home Assistant at a URL: from a configuration or its
// file, or else the Supervisor's if that URL is Core.
func HomeToken(url, value, file string) (string, error) {
	if o, is := FromEnvironment(os.Environ()); is && value == "" && file == "" && url == o.Core() {
		return o.Token, nil
	}
	return secret.Read("token", value, file)
}
