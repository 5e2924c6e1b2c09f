package tools

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/limit"
	"perch/must"
)

// answering returns the parsed result of a tool that responds with a text.
func answering(t testing.TB, text string) device.Result {
	t.Helper()
	body := must.Value(json.Marshal(map[string]any{"content": []map[string]any{{"type": "text", "text": text}}}))(t)
	r := must.Value(parseResult("self_camera_take_photo", xiaozhi.Response{Result: body}))(t)
	return r
}

// photo returns a picture of about the given size, and the picture in base64.
func photo(bytes int) (device.Picture, string) {
	data := []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00" + strings.Repeat("\x00\x01\xfe\xff\x3f", bytes/5))
	return device.Picture{Type: "image/jpeg", Data: data}, base64.StdEncoding.EncodeToString(data)
}

// TestPicturesInAText parses texts of web pages that act as a robot. They contain a picture in base64, its
// description, or both.
func TestPicturesInAText(t *testing.T) {
	p, encoded := photo(12_000)
	seen := `{"success":true,"action":"RESPONSE","response":"A red cup."}`
	pictures := []device.Picture{p}
	for name, c := range map[string]struct {
		answer string
		want   device.Result
	}{
		"the field's page": {`{"success":true,"message":"What is this?","photo_data":"data:image/jpeg;base64,` + encoded +
			`","photo_width":180,"photo_height":240,"vision_analysis":` + seen + `}`,
			device.Result{Text: seen, Pictures: pictures}},
		"the page, where nobody looked": {`{"success":true,"message":"?","photo_data":"data:image/jpeg;base64,` + encoded +
			`","vision_analysis":{"success":false,"error":"HTTP error! status: 401"}}`,
			device.Result{Text: `{"success":false,"error":"HTTP error! status: 401"}`, Pictures: pictures}},
		"words": {`{"vision_analysis":"A red cup."}`, device.Result{Text: "A red cup."}},
		"none": {`{"description":"A cup.","vision_analysis":null}`,
			device.Result{Text: `{"description":"A cup.","vision_analysis":null}`}},
		"an address":           {"data:image/jpeg;base64," + encoded, device.Result{Pictures: pictures}},
		"base64":               {encoded + "\n", device.Result{Pictures: pictures}},
		"base64 for addresses": {strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(encoded), device.Result{Pictures: pictures}},
		"base64 in lines":      {strings.Join([]string{encoded[:400], encoded[400:1000], encoded[1000:]}, "\r\n"), device.Result{Pictures: pictures}},
		"slashes that are escaped": {`{"image":"` + strings.ReplaceAll(encoded, "/", `\/`) + `"}`,
			device.Result{Text: `{"image":"(a picture)"}`, Pictures: pictures}},
		"an image among words": {"Look: ![photo](data:image/jpeg;base64," + encoded + ") nice",
			device.Result{Text: "Look: ![photo]((a picture)) nice", Pictures: pictures}},
		"JSON that is cut off": {`{"photo_data":"data:image/jpeg;base64,` + encoded[:1000],
			device.Result{Text: `{"photo_data":"(a picture)`, Pictures: []device.Picture{{Type: p.Type, Data: p.Data[:750]}}}},
		"something else in base64": {`{"sound":"data:audio/ogg;base64,` + base64.StdEncoding.EncodeToString(make([]byte, 3000)) + `"}`,
			device.Result{Text: `{"sound":"(data)"}`}},
		"what the firmware answers": {seen, device.Result{Text: seen}},
		"letters that are not many": {`{"elf_sha256":"` + strings.Repeat("0123456789abcdef", 4) + `"}`, device.Result{Text: `{"elf_sha256":"` +
			strings.Repeat("0123456789abcdef", 4) + `"}`}},
		"words without end in a row": {strings.Repeat("word ", 300), device.Result{Text: strings.Repeat("word ", 300)}},
	} {
		if got := answering(t, c.answer); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %.200q with %d pictures, want %.200q with %d", name, got.Text, len(got.Pictures), c.want.Text, len(c.want.Pictures))
		}
	}
}

// TestAnswersOfToolsAreBounded checks that a long result is cut to limit.Result bytes.
func TestAnswersOfToolsAreBounded(t *testing.T) {
	for name, answer := range map[string]string{
		"words":     strings.Repeat("é word ", 8000),
		"an object": `{"vision_analysis":{"response":"` + strings.Repeat("é word ", 8000) + `"}}`,
	} {
		got := answering(t, answer).Text
		if len(got) > limit.Result || len(got) < limit.Result-200 || !utf8.ValidString(got) || !strings.HasSuffix(got, "bytes)") {
			t.Errorf("%s: %d bytes, to the end %q", name, len(got), got[max(0, len(got)-60):])
		}
	}
	many := make([]map[string]any, 2000)
	for i := range many {
		many[i] = map[string]any{"type": "text", "text": "a text"}
	}
	body := must.Value(json.Marshal(map[string]any{"content": many}))(t)
	if r, err := parseResult("x", xiaozhi.Response{Result: body}); err != nil || len(r.Text) > limit.Result {
		t.Errorf("many texts: %d bytes, %v", len(r.Text), err)
	}
}

// FuzzResult checks that the text of a result is bounded and valid UTF-8, and that its pictures have the
// media type of an image.
func FuzzResult(f *testing.F) {
	_, encoded := photo(300)
	f.Add(`{"vision_analysis":{"response":"A cup."},"photo_data":"data:image/png;base64,` + encoded + `"}`)
	f.Add("data:image/jpeg;base64," + encoded + "==")
	f.Add(`\/\n\r` + encoded + "\xff")
	f.Fuzz(func(t *testing.T, text string) {
		r := answering(t, text)
		if len(r.Text) > limit.Result || !utf8.ValidString(r.Text) {
			t.Errorf("%d bytes", len(r.Text))
		}
		for _, p := range r.Pictures {
			if !strings.HasPrefix(p.Type, "image/") || len(p.Data) == 0 {
				t.Errorf("a picture of type %s and %d bytes", p.Type, len(p.Data))
			}
		}
	})
}

// TestParseStatus checks that the valid values of a robot's status are read, and that invalid values are
// ignored.
func TestParseStatus(t *testing.T) {
	for answer, want := range map[string]string{
		`{"audio_speaker":{"volume":70},"screen":{"brightness":75},"battery":{"level":82,"charging":false},"network":{"signal":"strong"}}`: `{"volume":70,"brightness":75,"battery":82,"charging":false,"signal":"strong"}`,
		`{"battery":{"level":82.6}}`:                                `{"volume":null,"brightness":null,"battery":82,"charging":null}`,
		`{"battery":{"level":-1},"audio_speaker":{"volume":1e300}}`: `{"volume":null,"brightness":null,"battery":null,"charging":null}`,
		`{"battery":7}`: "", `true`: "", `not JSON`: "",
	} {
		got := ""
		if status, ok := ParseStatus(StatusTool, answer); ok {
			text := must.Value(json.Marshal(status))(t)
			got = string(text)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", answer, got, want)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add(`{"battery":{"level":82,"charging":true},"network":{"signal":"weak"}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		status, ok := ParseStatus(StatusTool, answer)
		if ok && len(status.Signal) > 32 || status.Battery != nil && (*status.Battery < 0 || *status.Battery > 100) {
			t.Fatalf("%+v", status)
		}
	})
}
