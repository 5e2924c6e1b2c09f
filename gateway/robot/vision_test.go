package robot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
)

// seeing is a mind that can look at pictures.
type seeing struct {
	*scriptedMind
	looked []agent.Look
	err    error
}

func (s *seeing) See(_ context.Context, l agent.Look) (string, error) {
	s.looked = append(s.looked, l)
	return "A cup.", s.err
}

const jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"

// form is an upload: pairs of part and content.
func form(t *testing.T, parts ...string) (body io.Reader, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		p, err := w.CreateFormFile(parts[i], "camera.jpg")
		if err == nil {
			_, err = p.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return io.MultiReader(&b), w.FormDataContentType() // without a length, so it is sent in chunks
}

func TestVision(t *testing.T) {
	s, engine := watching(t, &registry{})
	mind := s.options.Mind.(*seeing)
	server := httptest.NewServer(engine)
	defer server.Close()
	url, token := s.cameras.issue(device.Robot{ID: robotID, BaseURL: server.URL}, "s", time.Now())
	_, old := s.cameras.issue(device.Robot{ID: robotID, BaseURL: server.URL}, "s", time.Now().Add(-2*tokenLives))
	if !strings.HasPrefix(url, server.URL) || !strings.Contains(strings.TrimPrefix(url, "http://"), ":") {
		t.Fatalf("the address %q has no port", url)
	}
	post := func(token, id string, parts ...string) (int, string) {
		body, kind := form(t, parts...)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+token)
		if id != "" {
			r.Header.Set("Device-Id", id)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}

	if status, text := post(token, robotID.MAC(), "question", "what is this?", "file", jpeg); status != 200 ||
		text != `{"success":true,"action":"RESPONSE","response":"A cup."}` {
		t.Errorf("as the firmware sends it: %d %s", status, text)
	}
	if l := mind.looked[0]; l.Question != "what is this?" || l.Picture.Type != "image/jpeg" || l.Robot != robotID || l.Session != "s" {
		t.Errorf("looked at %+v", l)
	}
	if p, ok := s.Picture(robotID); !ok || string(p.Data) != jpeg {
		t.Errorf("kept %v %v", p, ok)
	}
	if status, _ := post(token, strings.ToUpper(robotID.MAC()), "image", jpeg, "question", "?"); status != 200 {
		t.Errorf("as browsers send it: %d", status)
	}
	for name, c := range map[string]struct {
		status int
		token  string
		id     string
		parts  []string
	}{
		"no token":           {401, "", robotID.MAC(), []string{"file", jpeg}},
		"a wrong one":        {401, "x", robotID.MAC(), []string{"file", jpeg}},
		"one too old":        {401, old, robotID.MAC(), []string{"file", jpeg}},
		"another robot's":    {401, token, "a0:b1:c2:d3:e4:f6", []string{"file", jpeg}},
		"no robot":           {401, token, "nobody", []string{"file", jpeg}},
		"no picture":         {400, token, "", []string{"question", "?"}},
		"an empty one":       {400, token, "", []string{"file", ""}},
		"a page":             {415, token, "", []string{"file", "<html>"}},
		"too large":          {413, token, "", []string{"file", jpeg + strings.Repeat("x", mostPicture)}},
		"too large in parts": {413, token, "", []string{"x", strings.Repeat("x", mostUpload), "file", jpeg}},
		"a long question":    {413, token, "", []string{"question", strings.Repeat("x", mostQuestion+1), "file", jpeg}},
	} {
		if status, text := post(c.token, c.id, c.parts...); status != c.status || !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %d %s, want %d", name, status, text, c.status)
		}
	}
	mind.err = agent.ErrBlind
	if status, text := post(token, "", "file", jpeg); status != 200 || !strings.Contains(text, `"response":"blind"`) || !strings.Contains(text,
		"false") {
		t.Errorf("nobody can see: %d %s", status, text)
	}
	mind.err = errors.New("broken")
	if status, text := post(token, "", "file", jpeg); status != 200 || !strings.Contains(text, `"response":"failed"`) {
		t.Errorf("who sees is away: %d %s", status, text)
	}
	s.cameras.revoke("s")
	if status, _ := post(token, "", "file", jpeg); status != 401 {
		t.Errorf("after the channel has closed: %d", status)
	}
	// A robot whose address for us is unknown has nowhere to send to.
	if url, token := s.cameras.issue(device.Robot{ID: robotID}, "s", time.Now()); url != "" || token != "" {
		t.Errorf("%q %q", url, token)
	}
}
