package robot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/gateway/robot/vision"
	"perch/limit"
	"perch/must"
)

// seeing is a mind that records the pictures that it is asked about.
type seeing struct {
	*scriptedMind
	looked []agent.Look
	err    error
}

func (s *seeing) DescribeImage(_ context.Context, l agent.Look) (string, error) {
	s.looked = append(s.looked, l)
	return "A cup.", s.err
}

const jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"

// form returns the body of an upload and its content type. parts holds the names and contents of the parts, alternately.
func form(t *testing.T, parts ...string) (body io.Reader, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		p, err := w.CreateFormFile(parts[i], "camera.jpg")
		if err == nil {
			_, err = p.Write([]byte(parts[i+1]))
		}
		must.Succeed(t, err)
	}
	must.Succeed(t, w.Close())
	return io.MultiReader(&b), w.FormDataContentType() // without a length, so it is sent in chunks
}

func TestVision(t *testing.T) {
	s, engine := watching(t, &registry{})
	mind := s.options.Mind.(*seeing)
	server := httptest.NewServer(engine)
	defer server.Close()
	url, token := s.vision.Issue(device.Robot{ID: robotID, BaseURL: server.URL}, "s", time.Now())
	_, old := s.vision.Issue(device.Robot{ID: robotID, BaseURL: server.URL}, "s", time.Now().Add(-2*time.Hour))
	if !strings.HasPrefix(url, server.URL) || !strings.Contains(strings.TrimPrefix(url, "http://"), ":") {
		t.Fatalf("the address %q has no port", url)
	}
	post := func(token, id string, parts ...string) (int, string) {
		body, kind := form(t, parts...)
		r := must.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, url, body))(t)
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+token)
		if id != "" {
			r.Header.Set("Device-Id", id)
		}
		answer := must.Value(server.Client().Do(r))(t)
		defer answer.Body.Close()
		text := must.Value(io.ReadAll(answer.Body))(t)
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
		"too large":          {413, token, "", []string{"file", jpeg + strings.Repeat("x", limit.Message)}},
		"too large in parts": {413, token, "", []string{"x", strings.Repeat("x", vision.MaxUpload), "file", jpeg}},
		"a long question":    {413, token, "", []string{"question", strings.Repeat("x", limit.Text+1), "file", jpeg}},
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
	s.vision.Revoke("s")
	if status, _ := post(token, "", "file", jpeg); status != 401 {
		t.Errorf("after the channel has closed: %d", status)
	}
	// If the address at which a robot reaches the appliance is unknown, there is no URL for its uploads.
	if url, token := s.vision.Issue(device.Robot{ID: robotID}, "s", time.Now()); url != "" || token != "" {
		t.Errorf("%q %q", url, token)
	}
}

// watching returns a server whose mind is a seeing, and its routes.
func watching(t *testing.T, robots robots) (*Server, http.Handler) {
	t.Helper()
	bus := event.NewBus()
	o := testOptions(robots, bus, &seeing{scriptedMind: answer()})
	o.Phrases = func(_, name string) string { return "😐 " + name }
	s := NewServer(o)
	t.Cleanup(bus.Close)
	t.Cleanup(s.Close)
	return s, routesOf(t, s)
}

// routesOf returns a handler with the routes of a server.
func routesOf(t *testing.T, s *Server) http.Handler {
	t.Helper()
	engine := must.Value(httpserver.NewEngine(s.options.Log))(t)
	s.Routes(engine)
	return engine
}

// uploading returns the text of an upload request up to the end of the picture, and the rest of the request.
func uploading(token string, length int) (head, foot string) {
	head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"camera.jpg\"\r\n\r\n" + jpeg
	foot = "\r\n--b--\r\n"
	return fmt.Sprintf(
		"POST %s HTTP/1.1\r\nHost: perch.local\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s",
		vision.Path, token, len(head)+length+len(foot), head), foot
}

// TestSlowUploads checks 250 robots that send almost 4 MB each and never finish. Four uploads occupy the slots, all others
// are refused, and the memory grows only by those four.
func TestSlowUploads(t *testing.T) {
	const clients, most = 250, 64 << 20
	s, engine := watching(t, &registry{})
	server := httptest.NewServer(engine)
	defer server.Close()
	picture := make([]byte, limit.Message-len(jpeg))
	debug.FreeOSMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	answers, sent := make(chan int, clients), make(chan bool, clients)
	for n := range clients {
		id := device.ID(fmt.Sprintf("a0b1c2%06x", n))
		_, token := s.vision.Issue(device.Robot{ID: id, BaseURL: server.URL}, string(id), time.Now())
		conn := must.Value(new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String()))(t)
		defer conn.Close()
		go func() {
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				answers <- 0 // the connection was reset before the response was read
				return
			}
			_ = answer.Body.Close() // the body of an error response
			answers <- answer.StatusCode
		}()
		go func() {
			head, _ := uploading(token, len(picture))
			_, err := io.WriteString(conn, head)
			if err == nil {
				_, err = conn.Write(picture)
			}
			sent <- err == nil
		}()
	}
	counts := map[int]int{}
	late := time.After(30 * time.Second)
collecting:
	for range clients - 4 {
		select {
		case status := <-answers:
			counts[status]++
		case <-late:
			t.Error("not all were answered")
			break collecting
		}
	}
	for range clients {
		<-sent
	}
	runtime.ReadMemStats(&after)
	grown := int64(after.Sys-after.HeapReleased) - int64(before.Sys-before.HeapReleased)
	t.Logf("%v, memory grew by %d MB", counts, grown>>20)
	if len(answers) > 0 || counts[http.StatusServiceUnavailable]+counts[0] != clients-4 || counts[http.StatusServiceUnavailable] == 0 {
		t.Errorf("answers: %v, and %d more", counts, len(answers))
	}
	if grown > most {
		t.Errorf("memory grew by %d MB, want less than %d", grown>>20, most>>20)
	}
}

// TestASlowPictureIsGivenUp checks that an upload that takes too long is ended, and that its slot is free again.
func TestASlowPictureIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, engine := watching(t, &registry{})
		_, token := s.vision.Issue(device.Robot{ID: robotID, BaseURL: "http://perch.local:8003"}, "s", time.Now())
		send := func(body func(io.Writer)) (int, time.Duration) {
			client := httpservertest.Serve(t, engine)
			began := time.Now()
			wrote := make(chan struct{})
			go func() { defer close(wrote); body(client) }()
			answer := must.Value(http.ReadResponse(bufio.NewReader(client), nil))(t)
			took := time.Since(began)
			_ = client.Close()
			<-wrote
			return answer.StatusCode, took
		}
		head, foot := uploading(token, 1000)
		status, took := send(func(w io.Writer) {
			_, _ = io.WriteString(w, head)
			for range 999 {
				time.Sleep(time.Second)
				if _, err := io.WriteString(w, "x"); err != nil {
					return
				}
			}
		})
		if status != http.StatusRequestTimeout || took != 15*time.Second {
			t.Errorf("a byte a second: %d after %v", status, took)
		}
		long, _ := uploading(token, vision.MaxUpload)
		if status, took := send(func(w io.Writer) { _, _ = io.WriteString(w, long) }); status != http.StatusRequestEntityTooLarge || took != 0 {
			t.Errorf("one that says it is too long: %d after %v", status, took)
		}
		other := httpservertest.Serve(t, engine)
		must.Value(io.WriteString(other, head))(t)
		synctest.Wait()
		if status, took := send(func(w io.Writer) { _, _ = io.WriteString(w, head) }); status != http.StatusTooManyRequests || took != 0 {
			t.Errorf("one beside another: %d after %v", status, took)
		}
		_ = other.Close()
		synctest.Wait()
		stranger := strings.Replace(head, token, "wrong", 1)
		if status, took := send(func(w io.Writer) { _, _ = io.WriteString(w, stranger) }); status != http.StatusUnauthorized || took != 0 {
			t.Errorf("one without a token: %d after %v", status, took)
		}
		if status, _ := send(func(w io.Writer) { _, _ = io.WriteString(w, head+strings.Repeat("x", 1000)+foot) }); status != http.StatusOK {
			t.Errorf("the next one: %d", status)
		}
	})
}
