package simrobot

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// TestSoundParametersOutliveAChannel checks that the robot still uses the sound parameters of the first
// server hello if the second one, in another channel, has none.
func TestSoundParametersOutliveAChannel(t *testing.T) {
	var rates []int
	observe := on(func(w Welcomed) { rates = append(rates, w.Audio.SampleRate) })
	channels := 0
	stats, err := talk(t, Options{Say: []Sentence{second("one"), second("two")}, Observe: observe}, func(s *server, _ *Robot) {
		s.next(`"hello"`)
		if channels++; channels == 1 {
			s.text(`{"type":"hello","transport":"websocket","audio_params":{"sample_rate":16000,"frame_duration":60}}`)
		} else {
			s.text(`{"type":"hello","transport":"websocket"}`)
		}
		s.next(`"listen"`)
		s.quiet(1500 * time.Millisecond)
		s.answer(3)
		s.hangUp()
	})
	if err != nil || !slices.Equal(rates, []int{16000, 16000}) || len(stats.Turns) != 2 || stats.Turns[1].Packets != 3 {
		t.Errorf("%v; rates %v, want 16000 twice; %+v", err, rates, stats.Turns)
	}
}

func TestFaces(t *testing.T) {
	for _, c := range []struct{ firmware, emotion, face string }{
		{"2.2.4", "happy", "happy"}, {"2.2.4", "loving", "neutral"}, {"dotty", "loving", "loving"}, {"2.1", "kissy", "kissy"},
		{"2.1", "?", "neutral"},
	} {
		f, err := findFirmware(c.firmware)
		if err != nil || f.face(c.emotion) != c.face {
			t.Errorf("%s shows %s for %s, %v, want %s", c.firmware, f.face(c.emotion), c.emotion, err, c.face)
		}
	}
}

func TestUpgradeHeader(t *testing.T) {
	r := newRobot(t, Options{})
	r.flash.WebSocket = webSocketSettings{URL: "ws://perch.local:8003/xiaozhi/v1/"}
	for token, want := range map[string]string{"": "", "abc": "Bearer abc", "Basic abc": "Basic abc"} {
		r.flash.WebSocket.Token = token
		h := r.upgradeHeader(2)
		if got := h.Get("Authorization"); got != want {
			t.Errorf("token %q: %q, want %q", token, got, want)
		}
		if h.Get("Host") != "perch.local" || h.Get("Protocol-Version") != "2" || h.Get("Device-Id") != "a0:b1:c2:d3:e4:f5" {
			t.Errorf("header %v", h)
		}
	}
}

func TestUserToolsAnswerUnlisted(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/missing":
			http.NotFound(w, r)
		case r.Method == http.MethodPost:
			if _, head, err := r.FormFile("file"); err != nil || head.Filename != "screenshot.jpg" {
				t.Errorf("%v, %v", head, err)
			}
		default:
			_, _ = w.Write([]byte("picture"))
		}
	}))
	defer pictures.Close()
	r := newRobot(t, Options{})
	for _, c := range []struct{ tool, path, want, failed string }{
		{"self.screen.snapshot", "/", "true", ""},
		{"self.screen.snapshot", "/missing", "", "Failed to upload snapshot"},
		{"self.screen.preview_image", "/", "true", ""},
		{"self.screen.preview_image", "/missing", "", "Unexpected status code"},
	} {
		tool, _ := findTool(r.tools, c.tool)
		v := must.Value(tool.bind(parseObject([]byte(`{"url":"` + pictures.URL + c.path + `"}`))))(t)
		got, err := tool.slow(t.Context(), r, v)
		if got != c.want || c.failed == "" && err != nil || c.failed != "" && (err == nil || !strings.Contains(err.Error(), c.failed)) {
			t.Errorf("%s %s: %q, %v, want %q, %q", c.tool, c.path, got, err, c.want, c.failed)
		}
	}
	info := call(t, Options{}, toolCall("self.get_system_info", `{}`), toolCall("self.assets.set_download_url", `{"url":"http://h/a.bin"}`))
	if !strings.Contains(info[0], `\"mac_address\":\"a0:b1:c2:d3:e4:f5\"`) || !strings.Contains(info[1], `"text":"true"`) {
		t.Errorf("%s", info)
	}
}

// TestUpgradeToolClosesTheChannel checks that a robot reboots after a call of the upgrade tool, and that
// the person repeats the interrupted sentence in the next channel.
func TestUpgradeToolClosesTheChannel(t *testing.T) {
	channels, boots := 0, 0
	stats, err := talk(t, Options{OTA: "http://192.0.2.7:8003/xiaozhi/ota/", Say: []Sentence{second("one")}}, func(s *server, r *Robot) {
		r.http.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			boots++
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(goodReply))}, nil
		})
		s.greet()
		if channels++; channels == 1 {
			s.text(`{"type":"mcp","payload":` + toolCall("self.upgrade_firmware", `{"url":"http://h/f.bin"}`) + `}`)
			s.next(`"text":"true"`)
		} else {
			s.quiet(1500 * time.Millisecond)
			s.text(stt, ttsStart, sentence)
			time.Sleep(60 * time.Millisecond)
			s.to <- arrival{data: append([]byte{0, 0, byte(len(tone) >> 8), byte(len(tone))}, tone...)} // goodReply selects framing 3
			s.text(ttsStop)
		}
		<-s.closed
	})
	if err != nil || channels != 2 || boots != 1 || len(stats.Turns) != 1 {
		t.Errorf("%v; %d channels, %d boots, %+v", err, channels, boots, stats.Turns)
	}
}
