package relay

import (
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
)

// receiver is a fake program that receives webhooks.
type receiver struct {
	httpFake
	mu     sync.Mutex
	posts  []post
	status func(body string) int // returns the status of the response; nil for a receiver that accepts everything
}

type post struct{ id, at, signature, body, path string }

func newReceiver(t testing.TB, status func(body string) int) *receiver {
	r := &receiver{httpFake: httpFake{t: t}, status: status}
	r.start(listen(t, anywhere), http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" || q.Header.Get("Authorization") != "" {
			t.Errorf("%s %v: %v", q.Method, q.Header, err)
		}
		code := http.StatusNoContent
		if r.status != nil {
			code = r.status(string(body))
		}
		if code/100 == 2 {
			r.mu.Lock()
			head := q.Header
			r.posts = append(r.posts, post{head.Get("Webhook-Id"), head.Get("Webhook-Timestamp"), head.Get("Webhook-Signature"), string(body),
				q.URL.String()})
			r.mu.Unlock()
		}
		if code/100 == 3 {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		}
		w.WriteHeader(code)
	}))
	return r
}

func (r *receiver) again() {
	r.posts = nil
	r.httpFake.again()
}

// all returns the accepted posts whose body contains part.
func (r *receiver) all(part string) (found []post) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.posts {
		if strings.Contains(p.body, part) {
			found = append(found, p)
		}
	}
	return found
}

// untimed is a receiver that replaces the times in messages with 0.
type untimed struct{ *receiver }

func (r untimed) all() string {
	var lines []string
	for _, p := range r.receiver.all("") {
		lines = append(lines, regexp.MustCompile(`"ts":\d+`).ReplaceAllString(p.body, `"ts":0`))
	}
	return strings.Join(lines, "\n")
}

// TestWebhook tests that the webhook gets signed frames, except the frames that the words exclude. TestSpokenTurn tests a
// turn.
func TestWebhook(t *testing.T) {
	r := newReceiver(t, nil)
	secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	h := newConnected(t, Target{Kind: "webhook", URL: r.URL + "/hooks/robot?token=hush", Key: secret,
		Words: map[string]string{"frame.gesture": ""}})
	h.happens(robotA, "s", turn()...)
	h.happens(robotA, "s", event.TurnEnded{End: event.EndDone}, event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("the notification", func() bool { return len(r.all("Bread is done.")) == 1 })
	if len(r.all(`"gesture"`)) > 0 {
		t.Error("gestures are sent that the owner does not want")
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	ids := map[string]bool{}
	for _, p := range r.all("") {
		if p.signature != webhookSignature(key, p.id, p.at, []byte(p.body)) || ids[p.id] {
			t.Errorf("post %+v", p)
		}
		ids[p.id] = true
	}
	if shown := h.relays.List()[0].URL; strings.Contains(shown, "hush") {
		t.Errorf("the list shows %s", shown)
	}
}

// TestWebhookSignature compares a signature with an example from the libraries of Standard Webhooks.
func TestWebhookSignature(t *testing.T) {
	key, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	got := webhookSignature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestWebhookRepeatsNotification tests that a notification is sent again until the webhook accepts it, even if another
// program has shown it in the meantime.
func TestWebhookRepeatsNotification(t *testing.T) {
	var mu sync.Mutex
	refusals, tries := 2, 0
	r := newReceiver(t, func(body string) int {
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(body, "Bread is done.") {
			return http.StatusOK
		}
		if tries++; tries <= refusals {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	h := newConnected(t, Target{Kind: "webhook", URL: r.URL})
	h.happens("", "", event.Notification{ID: "n", Text: "Bread is done.", Urgency: "normal"})
	h.eventually("a note", func() bool { return strings.Contains(h.note(), "is not ready (HTTP 503)") })
	h.happens("", "", event.NotificationChanged{ID: "n", State: "shown"})
	h.eventually("the notification", func() bool { return len(r.all("Bread is done.")) == 1 })
	h.happens("", "", event.Notification{ID: "m", Text: "Tea is done.", Urgency: "normal"})
	h.eventually("the next", func() bool { return len(r.all("Tea is done.")) == 1 })
	if got := len(r.all("Bread is done.")); got != 1 {
		t.Errorf("%d notifications were sent", got)
	}
}

// TestWebhookAnswers tests the notes for responses with an error.
func TestWebhookAnswers(t *testing.T) {
	for status, c := range map[int]struct {
		ok   bool
		want string
	}{
		http.StatusMovedPermanently:    {false, "sends elsewhere (HTTP 301 to http://127.0.0.1:1/elsewhere)"},
		http.StatusUnauthorized:        {false, "refuses the signature"},
		http.StatusInternalServerError: {false, "has failed (HTTP 500)"},
		http.StatusNotFound:            {false, "check the url"},
		http.StatusUnprocessableEntity: {true, "refuses the request (HTTP 422)"},
	} {
		r := newReceiver(t, func(string) int { return status })
		h := newHarness(t, Target{Kind: "webhook", URL: r.URL, Key: "a-secret-of-mine"})
		h.eventually(c.want, func() bool { return strings.Contains(h.note(), c.want) && h.relays.List()[0].OK == c.ok })
		if strings.Contains(h.note(), "a-secret-of-mine") {
			t.Error("the note holds the key")
		}
		h.stop()
	}
}

// TestWebhookThatHangs tests that a webhook that does not respond delays only its own relay.
func TestWebhookThatHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	var asked atomic.Int32
	r := newReceiver(t, func(string) int {
		asked.Add(1)
		<-hang
		return http.StatusOK
	})
	defer close(hang)
	other := newFake(t, "", nil)
	began := time.Now()
	h := newHarness(t, Target{Kind: "webhook", URL: r.URL}, Target{Kind: "warudo", URL: "ws://" + other.address})
	h.eventually("it is asked, and the other is connected", func() bool { return asked.Load() > 0 && h.relays.List()[1].OK })
	for range 1000 {
		h.happens(robotA, "s", turn()...)
	}
	h.happens(robotA, "s", event.Said{Text: "The end."})
	h.eventually("another program is told the end", func() bool { return other.last("The end.") != "" })
	// The next request is sent only after the timeout of the previous one, however many events there are.
	if n, most := asked.Load(), 1+int32(time.Since(began)/postTimeout); n > most {
		t.Errorf("it is asked %d times meanwhile, and not %d", n, most)
	}
	h.eventually("the note", func() bool { return h.note() != "" })
}

// TestWebhookTrial tests that a trial sends frames of each kind.
func TestWebhookTrial(t *testing.T) {
	r := newReceiver(t, nil)
	h := newConnected(t, Target{Kind: "webhook", URL: r.URL})
	must.Succeed(t, h.relays.RunTrial(t.Context(), "webhook", time.Millisecond, func(string) error { return nil }))
	for _, kind := range []string{feed.KindState, feed.KindFace, feed.KindMood, feed.KindGesture, feed.KindSaid, feed.KindNotice} {
		if len(r.all(`"type":"`+kind+`"`)) == 0 {
			t.Errorf("no %s was tried", kind)
		}
	}
	if len(r.all(`"question_id":"try-`)) == 0 {
		t.Error("no question was tried")
	}
}

// TestWebhookAddress tests that the address is used unchanged. Some programs redirect an address without a slash at the
// end.
func TestWebhookAddress(t *testing.T) {
	for _, path := range []string{"/hooks/", "/hooks", "/", "/a%2Fb/?to=x"} {
		r := newReceiver(t, nil)
		h := newConnected(t, Target{Kind: "webhook", URL: r.URL + path})
		if got := r.all("pong")[0].path; got != path {
			t.Errorf("%s was sent to %s", path, got)
		}
		h.stop()
	}
}
