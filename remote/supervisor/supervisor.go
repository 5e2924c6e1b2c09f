// Package supervisor is a client of Home Assistant's Supervisor, the program that installs and runs
// Home Assistant's apps (add-ons). Perch can be such an app. With this package it finds Home
// Assistant's MQTT broker, announces its services to Home Assistant, and gets the URL and the token
// for Home Assistant's API.
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
	// Home is the URL at which apps reach the Supervisor.
	Home = "http://supervisor"
	// Ingress is the Supervisor's IP address. When a user opens an app's page in Home Assistant,
	// the app gets the requests from this address.
	Ingress = "172.30.32.2"
	// Gateway is the IP address of the host in the network of apps, and of every app that uses
	// the host's network.
	Gateway = "172.30.32.1"
)

// Options of a Client. URL and Token are required.
type Options struct {
	URL    string        // usually Home
	Token  string        // the app's token, which the Supervisor issues
	Within time.Duration // maximum duration of a request; 0 is 10 s
}

// FromEnvironment returns the options from a program's environment, which has the format of
// os.Environ. The Supervisor gives each app a token in the variable SUPERVISOR_TOKEN; ok is false if
// the token is missing. In tests SUPERVISOR_API sets a URL other than Home.
func FromEnvironment(environ []string) (o Options, ok bool) {
	for _, variable := range environ {
		switch name, value, _ := strings.Cut(variable, "="); name {
		case "SUPERVISOR_TOKEN":
			o.Token = strings.TrimSpace(value)
		case "SUPERVISOR_API":
			o.URL = strings.TrimRight(value, "/")
		}
	}
	o.URL = cmp.Or(o.URL, Home)
	return o, o.Token != ""
}

// Core returns the URL at which the Supervisor forwards requests to Home Assistant's API. Options.Token
// authenticates these requests, too.
func (o Options) Core() string { return o.URL + "/core" }

// Client is a client of one Supervisor. It is safe for concurrent use.
type Client struct {
	remote.Server
	o   Options
	web *remote.Client
}

// New returns a client, without opening a connection.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil {
		return nil, errors.New("SUPERVISOR_API is not a URL such as " + Home)
	}
	o.Within = cmp.Or(o.Within, 10*time.Second)
	transport := remote.NewTransport()
	transport.Proxy, transport.ForceAttemptHTTP2 = nil, false // the Supervisor is on this machine
	transport.DialContext = (&net.Dialer{Timeout: o.Within}).DialContext
	c := &Client{o: o, Server: remote.Server{Service: "Home Assistant's Supervisor", Address: remote.Address(base), Key: o.Token,
		Setting: "the app's token", Check: "the version of the app and of the Supervisor"}}
	c.web = remote.NewClient(remote.Options{Server: c.Server, Base: base, Transport: transport})
	return c, nil
}

// Close cancels running calls and closes idle connections.
func (c *Client) Close() { c.web.Close() }

// call sends a request with a JSON body, unless body is nil, and decodes the data of the response
// into data, which may be nil. The error is a *remote.Fault, or ctx.Err() if ctx has ended.
func (c *Client) call(ctx context.Context, method, path string, body, data any) error {
	text, err := c.web.Fetch(ctx, remote.Request{Method: method, Path: path, JSON: body, Within: c.o.Within, Repeatable: true}, limit.Body)
	if err != nil {
		return err
	}
	return c.unwrap(text, data)
}

// unwrap decodes a response of the form {"result":"ok","data":{...}}. It returns an error if the
// result is "error".
func (c *Client) unwrap(text []byte, data any) error {
	var response struct {
		Result  string          `json:"result"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(text, &response) != nil || response.Result != "ok" && response.Result != "error" {
		return c.Fault("answers with something that is not part of its API")
	}
	if response.Result == "error" {
		return c.Fault("has failed: " + c.Quote(response.Message))
	}
	if data == nil {
		return nil
	}
	if len(response.Data) == 0 || json.Unmarshal(response.Data, data) != nil {
		return c.Fault("answers with unexpected data")
	}
	return nil
}

// Broker is Home Assistant's MQTT broker.
type Broker struct {
	URL            string // such as "mqtt://core-mosquitto:1883"
	User, Password string
}

// ErrNoBroker reports that no app of Home Assistant offers an MQTT broker.
var ErrNoBroker = errors.New("no app of Home Assistant offers an MQTT broker")

// MQTT returns the broker that an app of Home Assistant offers. The error is ErrNoBroker only if
// the Supervisor reports that no app offers a broker.
func (c *Client) MQTT(ctx context.Context) (Broker, error) {
	var s service
	err := c.call(ctx, http.MethodGet, "services/mqtt", nil, &s)
	var refused *remote.Fault
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Reason, "not enabled") {
		return Broker{}, ErrNoBroker
	}
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return Broker{}, c.Faultf("%s does not tell this app about the MQTT broker (%s); the app's config.yaml must contain services: [mqtt:want]",
			c.Name(), c.StatusText(refused.Refusal))
	}
	if err != nil {
		return Broker{}, err
	}
	b, ok := s.broker()
	if !ok {
		return Broker{}, c.Fault("reports an MQTT broker without a valid host and port; check the app that offers it")
	}
	return b, nil
}

// service is the Supervisor's description of a broker.
type service struct {
	Host     string `json:"host"`
	Port     port   `json:"port"`
	SSL      bool   `json:"ssl"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// host matches a host name or an IPv4 address.
var host = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`) })

// broker returns the broker's URL and account. ok is false if the host or the port is invalid.
func (s service) broker() (Broker, bool) {
	if s.Port == 0 || !host().MatchString(s.Host) && net.ParseIP(s.Host) == nil {
		return Broker{}, false
	}
	scheme := "mqtt"
	if s.SSL {
		scheme = "mqtts"
	}
	address := net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port)))
	return Broker{URL: scheme + "://" + address, User: s.Username, Password: s.Password}, true
}

// port is a TCP port. The Supervisor's documentation shows it as a JSON string, but the Supervisor
// sends a number. port accepts both.
type port uint16

// UnmarshalJSON implements json.Unmarshaler.
func (p *port) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 16)
	*p = port(n)
	return err
}

// uuid matches the ID of an announcement.
var uuid = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F-]{1,64}$`) })

// Announce announces a service of this app to Home Assistant, and returns the ID of the
// announcement. The new announcement replaces an earlier one of the same service.
func (c *Client) Announce(ctx context.Context, service string, config map[string]any) (id string, err error) {
	var data struct{ UUID string }
	err = c.call(ctx, http.MethodPost, "discovery", map[string]any{"service": service, "config": config}, &data)
	var refused *remote.Fault
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return "", c.Faultf("%s accepts no announcement of %s from this app (%s); the app's config.yaml must list that service in discovery", c.Name(), service,
			c.StatusText(refused.Refusal))
	case err != nil:
		return "", err
	case !uuid().MatchString(data.UUID):
		return "", c.Fault("answers with unexpected data")
	}
	return data.UUID, nil
}

// Withdraw removes the announcement with the given ID, if it exists.
func (c *Client) Withdraw(ctx context.Context, id string) error {
	if !uuid().MatchString(id) {
		return nil // no announcement has such an ID
	}
	err := c.call(ctx, http.MethodDelete, "discovery/"+id, nil, nil)
	var refused *remote.Fault
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// HomeToken returns the access token for the Home Assistant server at url: value, or the content of
// file. If both arguments are empty and url is the Supervisor's forwarding URL (Options.Core), it
// returns the app's token from the environment.
func HomeToken(url, value, file string) (string, error) {
	if o, ok := FromEnvironment(os.Environ()); ok && value == "" && file == "" && url == o.Core() {
		return o.Token, nil
	}
	return secret.Read("token", value, file)
}
