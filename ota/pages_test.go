package ota_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/device"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

func TestIdentityByQuery(t *testing.T) {
	mine := device.NewClient("page")
	for _, c := range []struct {
		name, method, query string
		header              http.Header
		client              device.Client
	}{
		{"both", "POST", "device-id=a0:b1:c2:d3:e4:f5&client-id=page", nil, mine},
		{"GET", "GET", "device-id=a0:b1:c2:d3:e4:f5&client-id=page", nil, mine},
		{"escaped, in capitals", "GET", "device-id=A0%3AB1%3AC2%3AD3%3AE4%3AF5&client-id=page", nil, mine},
		{"without separators", "GET", "client-id=page&device-id=A0B1C2D3E4F5&x=%zz", nil, mine},
		{"no client", "GET", "device-id=a0b1c2d3e4f5", nil, device.Client{}},
		{"an empty client", "GET", "device-id=a0b1c2d3e4f5&client-id=", nil, device.Client{}},
		{"the client by header", "POST", "device-id=a0b1c2d3e4f5", http.Header{"Client-Id": {"page"}}, mine},
		{"the device by header", "POST", "client-id=page", http.Header{"Device-Id": {"a0:b1:c2:d3:e4:f5"}}, mine},
		{"headers before the query", "POST", "device-id=020000000001&client-id=other",
			http.Header{"Device-Id": {"a0:b1:c2:d3:e4:f5"}, "Client-Id": {"page"}}, mine},
		{"the query before the body", "POST", "device-id=a0b1c2d3e4f5&client-id=page", nil, mine},
	} {
		h := newFixture(t, device.AdoptOpen)
		if c.header == nil {
			c.header = http.Header{}
		}
		body := ""
		if c.method == http.MethodPost {
			body = `{"mac_address":"02:00:00:00:00:02"}`
		}
		f := mustRead(t, h.ask(c.method, "/xiaozhi/ota/?"+c.query, "perch:8003", c.header, body))
		if _, err := h.robots.Admit("a0b1c2d3e4f5", c.client, f.token); err != nil || len(h.robots.List()) != 1 {
			t.Errorf("%s: its token does not open its channel: %v, %+v", c.name, err, h.robots.List())
		}
	}
}

// TestPageWithoutClientIDIsOneRobot sends the MAC address in a header or in the query, in several spellings.
func TestPageWithoutClientIDIsOneRobot(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	page := http.Header{"Origin": {"https://panel.example"}, "User-Agent": {browser}}
	token := ""
	for _, spelling := range []string{"a0:b1:c2:d3:e4:f5", "A0:B1:C2:D3:E4:F5", "A0-B1-C2-D3-E4-F5", "a0b1c2d3e4f5"} {
		asked := page.Clone()
		asked.Set("Device-Id", spelling)
		for name, f := range map[string]flash{
			"by header": mustRead(t, h.ask(http.MethodPost, "/xiaozhi/ota/", "perch:8003", asked, "{}")),
			"by query":  mustRead(t, h.ask(http.MethodGet, "/xiaozhi/ota/?device-id="+spelling, "perch:8003", page, "")),
		} {
			if token == "" {
				token = f.token
			}
			if f.token == "" || f.token != token {
				t.Errorf("%s, %s: the token is %q, was %q", spelling, name, f.token, token)
			}
		}
	}
	if _, err := h.robots.Admit("a0b1c2d3e4f5", device.NewClient(""), token); err != nil || len(h.robots.List()) != 1 {
		t.Errorf("its channel stays closed: %v; robots %+v", err, h.robots.List())
	}
}

// TestATagChecksNoRobotIn checks that a web page cannot fill the registry with invented robots: with an image
// tag, the page can make a browser send a GET request to the appliance without an Origin header.
func TestATagChecksNoRobotIn(t *testing.T) {
	for _, c := range []struct {
		name, query, agent, origin, id string
		status                         int
	}{
		{"an image", "?device-id=a0b1c2d3e4f5", browser, "", "", 403},
		{"an image with a client", "?device-id=a0b1c2d3e4f5&client-id=x", browser, "", "", 403},
		{"an allowed page", "?device-id=a0b1c2d3e4f5", browser, "https://panel.example", "", 200},
		{"a program", "?device-id=a0b1c2d3e4f5", "curl/8.14.1", "", "", 200},
		{"no name", "?device-id=a0b1c2d3e4f5", "", "", "", 200},
		{"by header, which no tag can set", "", browser, "", "a0b1c2d3e4f5", 200},
	} {
		h := newFixture(t, device.AdoptOpen)
		header := http.Header{}
		for name, value := range map[string]string{"User-Agent": c.agent, "Origin": c.origin, "Device-Id": c.id} {
			if value != "" {
				header.Set(name, value)
			}
		}
		w := h.ask(http.MethodGet, "/xiaozhi/ota/"+c.query, "perch:8003", header, "")
		if w.Code != c.status {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if known := len(h.robots.List()) > 0; known != (c.status == 200) {
			t.Errorf("%s: remembered %t", c.name, known)
		}
		if c.status == 403 && !strings.Contains(w.Body.String(), "allowed_origins") {
			t.Errorf("%s: the cure is not told: %s", c.name, w.Body)
		}
		if list := h.service.Refused(); len(list) > 0 {
			t.Errorf("%s: listed as a refused robot: %+v", c.name, list)
		}
	}
}

func TestActivateByQuery(t *testing.T) {
	h := newFixture(t, device.AdoptCode)
	code := mustRead(t, h.ask(http.MethodPost, "/xiaozhi/ota/?device-id=A0:B1:C2:D3:E4:F5", "perch:8003", http.Header{}, "{}")).code
	h.activate(t, "?device-id=a0b1c2d3e4f5", http.Header{}, http.StatusAccepted)
	h.adopt(t, code)
	h.activate(t, "?device-id=a0b1c2d3e4f5", http.Header{}, http.StatusOK)
	h.activate(t, "?device-id=a0b1c2d3e4f5&client-id=other", http.Header{}, http.StatusAccepted)
	h.activate(t, "?device-id=robot", http.Header{}, http.StatusBadRequest)
}

// TestTheClientOfTheBody checks that the UUID in the body identifies a client that sends no ID in the headers,
// unless the robot was bound to a client without an ID before.
func TestTheClientOfTheBody(t *testing.T) {
	const body = `{"mac_address":"a0:b1:c2:d3:e4:f5","uuid":"from the body"}`
	none := http.Header{"Device-Id": {"a0:b1:c2:d3:e4:f5"}}
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   device.Client
	}{
		"in the body":  {none, body, device.NewClient("from the body")},
		"header first": {headers(), body, device.NewClient(headers().Get("Client-Id"))},
		"nowhere":      {none, `{"uuid":""}`, device.Client{}},
		"no string":    {none, `{"uuid":7}`, device.Client{}},
	} {
		h := newFixture(t, device.AdoptOpen)
		token := h.checkIn(t, c.header, c.body).token
		if _, err := h.robots.Admit("a0b1c2d3e4f5", c.want, token); err != nil {
			r, _ := h.robots.Get("a0b1c2d3e4f5")
			t.Errorf("%s: bound to %+v, want %+v", name, r.Client, c.want)
		}
	}
	h := newFixture(t, device.AdoptOpen)
	before := h.checkIn(t, none, "{}").token
	if after := h.checkIn(t, none, body).token; after == "" || after != before {
		t.Errorf("bound without a client, its token became %q, was %q", after, before)
	}
}

// TestActivateWithoutAClient checks that a client that is identified only by the body of its check-in waits until
// it is adopted, and waits again while another client waits to be adopted.
func TestActivateWithoutAClient(t *testing.T) {
	h := newFixture(t, device.AdoptCode)
	none := http.Header{"Device-Id": {"a0:b1:c2:d3:e4:f5"}}
	code := h.checkIn(t, none, `{"uuid":"one"}`).code
	h.activate(t, "", none, http.StatusAccepted)
	h.adopt(t, code)
	h.activate(t, "", none, http.StatusOK)
	if h.checkIn(t, none, `{"uuid":"two"}`).code == "" {
		t.Error("another client does not wait")
	}
	h.activate(t, "", none, http.StatusAccepted)
}

// TestPeopleAtTheRobotsAddress checks that a person who opens the address in the QR code receives a page in the
// language of the browser. Browsers and programs that preview links must not be listed as refused robots, but a
// robot without an ID must be.
func TestPeopleAtTheRobotsAddress(t *testing.T) {
	h := newFixture(t, device.AdoptOpen)
	const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"
	for _, c := range []struct {
		method string
		header http.Header
		page   string
	}{
		{http.MethodGet, http.Header{"User-Agent": {phone}, "Accept": {"text/html,application/xhtml+xml"}}, "http://perch:8003/xiaozhi/ota/"},
		{http.MethodGet, http.Header{"User-Agent": {phone}, "Accept": {"text/html"}, "Accept-Language": {"de-DE,de;q=0.9"}}, "Diese Adresse"},
		{http.MethodGet, http.Header{"User-Agent": {phone}, "Accept": {"*/*"}}, "<!doctype html>"}, // a preview
		{http.MethodHead, http.Header{"User-Agent": {phone}}, ""},
		{http.MethodGet, http.Header{"User-Agent": {"curl/8.0"}}, "no_device_id"},
		{http.MethodGet, http.Header{"User-Agent": {"WhatsApp/2.24"}}, "no_device_id"},
	} {
		w := h.ask(c.method, "/xiaozhi/ota/", "perch:8003", c.header, "")
		if !strings.Contains(w.Body.String(), c.page) || strings.Contains(c.page, "html") && w.Code != http.StatusOK {
			t.Errorf("%s %v: %d %s", c.method, c.header, w.Code, w.Body)
		}
		if list := h.service.Refused(); len(list) > 0 {
			t.Fatalf("%s %v: listed as refused: %+v", c.method, c.header, list)
		}
	}
	refuse(h, "192.168.1.50", "", "perch:8003", "{}")
	if list := h.service.Refused(); len(list) != 1 {
		t.Errorf("a robot without its id: %+v", list)
	}
}
