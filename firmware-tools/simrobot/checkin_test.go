package simrobot

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/must"
)

const goodReply = `{"websocket":{"url":"ws://192.0.2.7:8003/xiaozhi/v1/","token":"t1","version":3}}`

// checkIn makes a robot check in with a server whose response has the body reply.
func checkIn(t *testing.T, r *Robot, reply string) (Bootstrap, error) {
	t.Helper()
	r.o.OTA = "http://192.0.2.7:8003/xiaozhi/ota/"
	r.http.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(reply))}, nil
	})
	return r.CheckIn(t.Context())
}

func newRobot(t testing.TB, o Options) *Robot {
	t.Helper()
	o.MAC = testMAC
	r := must.Value(New(o))(t)
	return r
}

func TestCheckInRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	appliance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, goodReply)
	}))
	defer appliance.Close()
	r := newRobot(t, Options{OTA: appliance.URL + "/xiaozhi/ota/"})
	b, err := r.CheckIn(t.Context())
	if err != nil || b.URL != "ws://192.0.2.7:8003/xiaozhi/v1/" || b.Token != "t1" || b.Framing != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	want := map[string]string{
		"Activation-Version": "1", "Device-Id": "a0:b1:c2:d3:e4:f5", "Client-Id": r.flash.UUID, "User-Agent": "m5stack-stack-chan/1.2.4",
		"Accept-Language": "en-US", "Content-Type": "application/json", "Accept-Encoding": "", "Serial-Number": "",
	}
	for k, v := range want {
		if got.Header.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, got.Header.Get(k), v)
		}
	}
	if got.Method != http.MethodPost || got.URL.Path != "/xiaozhi/ota/" || !got.Close || got.ContentLength != int64(len(body)) {
		t.Errorf("%s %s, close %t, %d bytes of %d", got.Method, got.URL, got.Close, got.ContentLength, len(body))
	}
	var told struct {
		Version     int
		Heap        string `json:"minimum_free_heap_size"`
		MAC         string `json:"mac_address"`
		UUID        string
		Application struct{ Name, Version string }
		Partitions  []struct{ Label string } `json:"partition_table"`
		OTA         struct{ Label string }
		Display     struct{ Width int }
		Board       struct{ Type, Name, IP, MAC string }
	}
	must.Succeed(t, json.Unmarshal(body, &told))
	if told.Version != 2 || told.Heap == "" || told.MAC != "a0:b1:c2:d3:e4:f5" || told.UUID != r.flash.UUID ||
		told.Application.Name != "stack-chan" ||
		told.Application.Version != "1.2.4" || len(told.Partitions) < 5 || told.OTA.Label != "ota_0" || told.Display.Width != 320 ||
		told.Board.Name != "m5stack-stack-chan" {
		t.Errorf("body %+v", told)
	}
}

func TestBootstrapCrashes(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for reply, says := range map[string]string{
		`{"websocket":{"url":"ws://h:1/","authorization_x":"1234"}}`:                        "", // 15 characters
		`{"websocket":{"url":"ws://h:1/","authorization_xy":"1234"}}`:                       "15 characters of NVS",
		`{"websocket":{"url":"ws://h:1/","a_very_long_number":1}}`:                          "15 characters of NVS",
		`{"websocket":{"url":"ws://h:1/","a_very_long_boolean":true}}`:                      "", // booleans are not stored
		`{"mqtt":{"a_very_long_string":"1234"}}`:                                            "under \"mqtt\"",
		`{"websocket":{"url":"ws://h:1/","token":"` + long + `"}}`:                          "4000 bytes",
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"v1.0","url":""}}`:          "std::stoi",
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"1..2","url":""}}`:          "std::stoi",
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"1.99999999999","url":""}}`: "std::stoi",
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"latest"}}`:                 "", // without a url the version is not parsed
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"1.0-rc1","url":""}}`:       "",
		`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"","url":""}}`:              "",
		`{"websocket":{"url":"ws://h/path:x"}}`:                                             "no port but a colon",
	} {
		_, err := checkIn(t, newRobot(t, Options{}), reply)
		var fatal *Crash
		switch {
		case says == "" && err != nil:
			t.Errorf("%.100s: %v, want no error", reply, err)
		case says != "" && (!errors.As(err, &fatal) || !strings.Contains(err.Error(), says)):
			t.Errorf("%.100s: %v, want a crash that says %q", reply, err, says)
		}
	}
}

func TestBootstrapTransport(t *testing.T) {
	for reply, want := range map[string]error{
		`{"mqtt":{"endpoint":"h"},"websocket":{"url":"ws://h:1/"}}`: nil, // the robot uses MQTT
		`{"mqtt":{"keepalive":60}}`:                                 ErrMQTT,
		`{"server_time":{"timestamp":1}}`:                           ErrMQTT,
		`{"WebSocket":{"URL":"ws://h:1/"}}`:                         nil, // keys are compared without case
	} {
		if _, err := checkIn(t, newRobot(t, Options{}), reply); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", reply, err, want)
		}
	}
	for reply, wanted := range map[string]device.Transport{
		`{"mqtt":{"endpoint":"h:1884"}}`:    device.WebSocket,
		`{"websocket":{"url":"ws://h:1/"}}`: device.MQTT,
	} {
		if _, err := checkIn(t, newRobot(t, Options{Transport: wanted}), reply); !errors.Is(err, ErrTransport) {
			t.Errorf("%s where %s is wanted: %v", reply, wanted, err)
		}
	}
	for _, reply := range []string{``, `[]`, `{"mqtt":{"endpoint":"h:port"}}`, `not json`, `{"websocket":{"url":"nonsense"}}`} {
		if _, err := checkIn(t, newRobot(t, Options{}), reply); err == nil {
			t.Errorf("%q: no error", reply)
		}
	}
}

func TestUpgradeIsOffered(t *testing.T) {
	for firmware, want := range map[string]string{
		`{"version":"1.2.4","url":"http://h/f.bin"}`:          "",
		`{"version":"1.2.4.1","url":"http://h/f.bin"}`:        "http://h/f.bin",
		`{"version":"1.10","url":"http://h/f.bin"}`:           "http://h/f.bin",
		`{"version":"1.1.9","url":"http://h/f.bin"}`:          "",
		`{"version":"0","url":"http://h/f.bin","force":1}`:    "http://h/f.bin",
		`{"version":"0","url":"http://h/f.bin","force":true}`: "",
	} {
		b, err := checkIn(t, newRobot(t, Options{}), `{"websocket":{"url":"ws://h:1/"},"firmware":`+firmware+`}`)
		if err != nil || b.Upgrade != want {
			t.Errorf("%s: upgrade %q, %v, want %q", firmware, b.Upgrade, err, want)
		}
	}
}

func TestFlashKeepsKeysThatABootstrapOmits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flash.json")
	first := newRobot(t, Options{FlashFile: file})
	must.Value(checkIn(t, first, goodReply))(t)
	second := newRobot(t, Options{FlashFile: file})
	b, err := checkIn(t, second, `{"websocket":{"url":"ws://h:1/","version":"2"}}`)
	if err != nil || b.URL != "ws://h:1/" || b.Token != "t1" || b.Framing != 3 || len(b.Oddities) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	if second.flash.UUID != first.flash.UUID || second.flash.UUID == newRobot(t, Options{}).flash.UUID {
		t.Error("the Client-Id is not the flash's")
	}
	if b, _ := checkIn(t, second, `{"websocket":{"url":"ws://h:1/","token":"","version":0}}`); b.Token != "" || b.Framing != xiaozhi.Framing1 {
		t.Errorf("cleared: %+v", b)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file that holds the token: %v, %v", info.Mode(), err)
	}
	if one, two := newRobot(t, Options{}), newRobot(t, Options{}); one.flash.UUID != two.flash.UUID {
		t.Error("without a file, two runs are two robots")
	}
}

func TestOTAURL(t *testing.T) {
	for _, url := range []string{"", "http://a", "ftp://example.com/", "http://u:p@example.com/", "http://[::1]:8003/xiaozhi/ota/",
		"http://%zz/xiaozhi/ota"} {
		if _, err := newRobot(t, Options{OTA: url}).CheckIn(t.Context()); err == nil {
			t.Errorf("%q was used", url)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	appliance := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer appliance.Close()
	if _, err := newRobot(t, Options{OTA: appliance.URL + "/xiaozhi/ota/"}).CheckIn(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "302") {
		t.Errorf("%v, want a failure that names the status", err)
	}
}

func TestActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		var shown string
		r := newRobot(t, Options{OTA: "http://192.0.2.7:8003/xiaozhi/ota/", Observe: func(h Observation) {
			if w, ok := h.(AwaitsAdoption); ok {
				shown = w.Code
			}
		}})
		statuses := []int{202, 202, 500, 200}
		r.http.Transport = roundTrip(func(q *http.Request) (*http.Response, error) {
			asked = append(asked, q.URL.Path)
			answer := &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(goodReply))}
			switch {
			case strings.HasSuffix(q.URL.Path, "/activate"):
				answer.StatusCode = statuses[0]
				statuses = statuses[1:]
			case len(asked) == 1:
				answer.Body = io.NopCloser(strings.NewReader(`{"activation":{"code":"123456","challenge":"c","message":"adopt me"}}`))
			}
			return answer, nil
		})
		start := time.Now()
		err := r.Boot(t.Context())
		if err != nil || shown != "123456" || len(asked) != 6 || asked[1] != "/xiaozhi/ota/activate" || asked[5] != "/xiaozhi/ota/" {
			t.Errorf("%v; shown %q, asked %q", err, shown, asked)
		}
		near(t, "adopted", time.Since(start), 16*time.Second) // 3 s after each status 202, and 10 s after the status 500
	})
}

func TestObjectIsCJSONs(t *testing.T) {
	o := parseObject([]byte(`{"Key":"first","key":"second","n":-2.9,"big":1e300,"s":7,"b":true,"o":{"x":1}}`))
	if s, ok := o.text("KEY"); !ok || s != "first" {
		t.Errorf("KEY is %q, want the first that fits", s)
	}
	if n, ok := asNumber(o.lookup("n")); !ok || n != -2 {
		t.Errorf("n is %d, want it truncated", n)
	}
	if n, _ := asNumber(o.lookup("big")); n != 1<<31-1 {
		t.Errorf("big is %d, want the largest int", n)
	}
	if _, ok := o.text("s"); ok {
		t.Error("a number is a string")
	}
	if _, ok := asNumber(o.lookup("b")); ok {
		t.Error("a boolean is a number")
	}
	if x := parseObject(o.lookup("o")); len(x) != 1 || parseObject(o.lookup("nothing")) != nil {
		t.Errorf("o is %v", x)
	}
	for _, bad := range []string{"", "[]", `"x"`, "{", `{"a"}`, `{"a":}`, `{"a":1`, `{1:2}`, "null"} {
		if parseObject([]byte(bad)) != nil {
			t.Errorf("%s is an object", bad)
		}
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]},"a":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var any map[string]json.RawMessage
		valid := json.Unmarshal(text, &any) == nil && any != nil
		if o := parseObject(text); valid && len(o) < len(any) {
			t.Errorf("%d members of %d", len(o), len(any))
		}
	})
}

func FuzzReadBootstrap(f *testing.F) {
	f.Add([]byte(goodReply))
	f.Add([]byte(`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"1.0-rc1","url":"","force":1},"activation":{"code":"1"}}`))
	r := newRobot(f, Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := r.readBootstrap(text); err == nil && !b.Framing.Valid() {
			t.Errorf("framing %d", b.Framing)
		}
	})
}
