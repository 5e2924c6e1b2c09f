package simrobot

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/must"
)

// call sends MCP payloads to a robot, and returns the robot's text messages, one for each payload.
func call(t *testing.T, o Options, payloads ...string) []string {
	t.Helper()
	var answers []string
	o.Stay = true
	_, err := talk(t, o, func(s *server, _ *Robot) {
		s.opens(append(firstTexts(o.Firmware), listenAuto)...)
		for _, p := range payloads {
			s.text(`{"type":"mcp","payload":` + p + `}`)
			for m := range s.from {
				if m.text != "" {
					answers = append(answers, m.text)
					break
				}
			}
		}
	})
	must.Succeed(t, err)
	return answers
}

func toolCall(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
}

func TestMCPAnswers(t *testing.T) {
	const before, after = `{"session_id":"s1","type":"mcp","payload":{"jsonrpc":"2.0","id":5,`, `}}`
	text := func(s string) string {
		return `"result":{"content":[{"type":"text","text":` + s + `}],"isError":false}`
	}
	failed := func(s string) string { return `"error":{"message":"` + s + `"}` }
	for _, c := range []struct{ ask, want string }{
		{`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}`,
			`"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"m5stack-stack-chan","version":"1.2.4"}}`},
		{`{"jsonrpc":"2.0","id":5.9,"method":"ping"}`, failed("Method not implemented: ping")},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, failed("Missing params")},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}`, failed("Missing name")},
		{toolCall("x", `[]`), failed("Invalid arguments")},
		{toolCall(`say "x"`, `{}`), failed(`Unknown tool: say "x"`)}, // the firmware does not escape quotes
		{toolCall("self.audio_speaker.set_volume", `{}`), failed("Missing valid argument: volume")},
		{toolCall("self.audio_speaker.set_volume", `{"volume":"40"}`), failed("Missing valid argument: volume")},
		{toolCall("self.audio_speaker.set_volume", `{"volume":-1}`), failed("Value is below minimum allowed: 0")},
		{toolCall("self.audio_speaker.set_volume", `{"volume":101}`), failed("Value exceeds maximum allowed: 100")},
		{toolCall("self.audio_speaker.set_volume", `{"VOLUME":40.7,"extra":1}`), text(`"true"`)},
		{toolCall("self.get_device_status", `{}`), text(`"{\"audio_speaker\":{\"volume\":70},\"screen\":{\"brightness\":75,\"theme\":\"light\"},` +
			`\"battery\":{\"level\":82,\"charging\":false},` +
			`\"network\":{\"type\":\"wifi\",\"ssid\":\"simulated\",\"signal\":\"strong\"},\"chip\":{\"temperature\":41.5}}"`)},
		{toolCall("self.screen.set_theme", `{"theme":"pink"}`), text(`"false"`)},
		{toolCall("self.robot.set_head_angles", `{"yaw":129}`), failed("Value exceeds maximum allowed: 128")},
		{toolCall("self.robot.set_led_color", `{"r":1,"g":1,"b":1}`), text(`"true"`)}, // unknown arguments are ignored
		{toolCall("self.robot.stop_reminder", `{}`), text(`"false"`)},
		{toolCall("self.camera.take_photo", `{"question":"?"}`), failed("Image explain URL or token is not set")},
		{toolCall("self.screen.get_info", `{}`), text(`"{\"width\":320,\"height\":240,\"monochrome\":false}"`)}, // works without being listed
		{toolCall("self.reboot", `{}`), text(`"true"`)},
	} {
		if got := call(t, Options{}, c.ask)[0]; got != before+c.want+after {
			t.Errorf("%s\n got %s\nwant %s", c.ask, got, before+c.want+after)
		}
	}
}

func TestToolsChangeTheRobot(t *testing.T) {
	var volume, head string
	observe := func(h Observation) {
		switch h := h.(type) {
		case VolumeChanged:
			volume = fmt.Sprint(h.Volume)
		case HeadMoved:
			head = fmt.Sprint(h.Yaw, h.Pitch, h.Speed)
		}
	}
	answers := call(t, Options{Observe: observe},
		toolCall("self.audio_speaker.set_volume", `{"volume":40}`),
		toolCall("self.screen.set_brightness", `{"brightness":10}`),
		toolCall("self.screen.set_theme", `{"theme":"dark"}`),
		toolCall("self.get_device_status", `{}`),
		toolCall("self.robot.set_head_angles", `{"yaw":-45,"pitch":20}`),
		toolCall("self.robot.set_head_angles", `{"pitch":30,"speed":300}`), // does not change the yaw
		toolCall("self.robot.get_head_angles", `{}`),
		toolCall("self.robot.create_reminder", `{"duration_seconds":90,"message":"tea"}`),
		toolCall("self.robot.create_reminder", `{}`),
		toolCall("self.robot.stop_reminder", `{"id":1}`),
		toolCall("self.robot.get_reminders", `{}`))
	if volume != "40" || head != "-45 30 300" {
		t.Errorf("seen volume %s, head %s", volume, head)
	}
	for i, want := range map[int]string{
		3: `\"volume\":40},\"screen\":{\"brightness\":10,\"theme\":\"dark\"}`, 6: `"{\"yaw\":-45,\"pitch\":30}"`, 7: `"text":"1"`, 8: `"text":"2"`,
		9: `"text":"true"`, 10: `[{\"id\":2,\"duration_seconds\":60,\"message\":\"Time's up!\",\"repeat\":false}]`,
	} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d is %s, want %s in it", i, answers[i], want)
		}
	}
}

// list requests all pages of a robot's list of tools. It returns the tools and the number of pages.
func list(t *testing.T, o Options, withUserTools bool) (tools []device.Tool, pages int) {
	t.Helper()
	for cursor := ""; ; {
		answer := call(t, o, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q,"withUserTools":%t}}`, cursor,
			withUserTools))[0]
		m := must.Value(xiaozhi.ParseFromRobot([]byte(answer)))(t)
		r, err := xiaozhi.ParseResponse(m.(xiaozhi.FromMCP).Payload)
		if err != nil || r.Error != nil || len(r.Result) > pageSize {
			t.Fatalf("page of %d bytes: %v, %v", len(r.Result), err, r.Error)
		}
		var page struct {
			Tools      []device.Tool `json:"tools"`
			NextCursor string        `json:"nextCursor"`
		}
		must.Succeed(t, json.Unmarshal(r.Result, &page))
		tools, pages = append(tools, page.Tools...), pages+1
		if cursor = page.NextCursor; cursor == "" {
			return tools, pages
		}
	}
}

func TestToolList(t *testing.T) {
	most := 9
	many := make([]device.Tool, 40)
	for i := range many {
		many[i] = device.Tool{Name: fmt.Sprintf("self.fork.t%d", i), Description: strings.Repeat("x", 500), Schema: device.Schema{
			Properties: map[string]device.Argument{"n": {Type: "integer", Minimum: new(int), Maximum: &most}, "on": {Type: "boolean"}},
			Required:   []string{"n"}}}
	}
	for _, c := range []struct {
		o             Options
		withUserTools bool
		tools, pages  int
	}{
		{Options{}, false, 11, 1},
		{Options{}, true, 18, 1},
		{Options{Firmware: "dotty"}, false, 15, 1},
		{Options{MoreTools: many}, false, 51, 5},
	} {
		tools, pages := list(t, c.o, c.withUserTools)
		if len(tools) != c.tools || pages != c.pages {
			t.Errorf("%+v: %d tools on %d pages, want %d on %d", c.o.Firmware, len(tools), pages, c.tools, c.pages)
		}
		names := map[string]bool{}
		for _, tool := range tools {
			names[tool.Name] = true
		}
		if len(names) != c.tools {
			t.Errorf("%d names for %d tools", len(names), c.tools)
		}
	}
	answer := call(t, Options{}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"self.nothing"}}`)[0]
	if !strings.Contains(answer, `"error":{"message":"Failed to add tool  because of payload size limit"}`) {
		t.Errorf("an unknown cursor: %s", answer)
	}
	if got := call(t, Options{MoreTools: many}, toolCall("self.fork.t3", `{"n":9}`))[0]; !strings.Contains(got, `"text":"true"`) {
		t.Errorf("a fork's tool: %s", got)
	}
}

func TestUserOnlyToolsAreMarked(t *testing.T) {
	const ask, mark = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"withUserTools":%t}}`, `"annotations":{"audience":["user"]}`
	for with, want := range map[bool]int{true: 7, false: 0} {
		answer := call(t, Options{}, fmt.Sprintf(ask, with))[0]
		if n := strings.Count(answer, mark); n != want || strings.Contains(answer, `"self.reboot"`) != with {
			t.Errorf("with user tools %t: %d are marked, want %d: %s", with, n, want, answer)
		}
	}
}

func TestCursorIsTheFirstToolOfThePage(t *testing.T) {
	answer := call(t, Options{}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"self.robot.get_reminders"}}`)[0]
	const first, last = `"result":{"tools":[{"name":"self.robot.get_reminders",`, `"name":"self.robot.stop_reminder"`
	if !strings.Contains(answer, first) || !strings.Contains(answer, last) || strings.Contains(answer, "nextCursor") {
		t.Error(answer)
	}
}

func TestSchemaOfHeadAngles(t *testing.T) {
	tool, _ := findTool(robotTools(), "self.robot.set_head_angles")
	const want = `"inputSchema":{"type":"object","properties":{"yaw":{"type":"integer","default":-9999,"minimum":-9999,"maximum":128},` +
		`"pitch":{"type":"integer","default":-9999,"minimum":-9999,"maximum":90},"speed":{"type":"integer","default":150,"minimum":100,"maximum":1000}}}}`
	if got := tool.json(); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant at its end %s", got, want)
	}
	volume, _ := findTool(commonTools(), "self.audio_speaker.set_volume")
	if got := volume.json(); !strings.HasSuffix(got,
		`"inputSchema":{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100}},"required":["volume"]}}`) {
		t.Error(got)
	}
}

func TestPhotoBlocksOnlyTheMainLoop(t *testing.T) {
	status := http.StatusOK
	vision := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != -1 || r.Header.Get("Device-Id") != "a0:b1:c2:d3:e4:f5" || r.Header.Get("Authorization") != "Bearer v1" {
			t.Errorf("length %d, headers %v", r.ContentLength, r.Header)
		}
		if !strings.HasSuffix(r.Header.Get("Content-Type"), "boundary=----ESP32_CAMERA_BOUNDARY") {
			t.Errorf("content type %q", r.Header.Get("Content-Type"))
		}
		file, head, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		picture, _ := io.ReadAll(file)
		if r.FormValue("question") != "what is it" || head.Filename != "camera.jpg" || http.DetectContentType(picture) != "image/jpeg" {
			t.Errorf("question %q, file %q of %d bytes", r.FormValue("question"), head.Filename, len(picture))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"response":"a cat"}`)
	}))
	defer vision.Close()
	r := newRobot(t, Options{})
	r.body.visionURL, r.body.visionToken = vision.URL, "v1"
	tool, _ := findTool(r.tools, "self.camera.take_photo")
	question := values{"question": json.RawMessage(`"what is it"`)}
	if got, err := tool.slow(t.Context(), r, question); err != nil || got != `{"response":"a cat"}` {
		t.Errorf("%q, %v", got, err)
	}
	status = http.StatusServiceUnavailable
	if _, err := tool.slow(t.Context(), r, question); err == nil || err.Error() != "Failed to upload photo" {
		t.Errorf("status 503: %v", err)
	}
}

func TestSlowToolsKeepTheMainLoopBusy(t *testing.T) {
	talk(t, Options{Stay: true}, func(s *server, r *Robot) {
		s.greet()
		slow := make(chan struct{})
		vision := roundTrip(func(*http.Request) (*http.Response, error) {
			<-slow
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("a cat"))}, nil
		})
		r.http.Transport = vision
		s.text(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"vision":{"url":"http://x/"}}}}}`)
		s.next(`"id":1`)
		s.text(`{"type":"mcp","payload":`+toolCall("self.camera.take_photo", `{"question":"?"}`)+`}`, ttsStart)
		if n := s.quiet(605 * time.Millisecond); n < 9 {
			t.Errorf("%d packets of the microphone while a photo is taken", n)
		}
		close(slow)
		s.next(`"text":"a cat"`)
		time.Sleep(20 * time.Millisecond)
		if n := s.quiet(300 * time.Millisecond); n > 1 {
			t.Error("tts start was lost")
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
