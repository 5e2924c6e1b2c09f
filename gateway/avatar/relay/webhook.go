package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/gateway/avatar/feed"
	"perch/limit"
	"perch/remote"
)

// webhook is an HTTP server to which frames are sent by POST requests, in the same form as to skins. Kinds of frames
// that the owner has turned off are not sent. If a key is configured, requests are signed according to Standard Webhooks 1, which
// libraries for most languages can verify.
type webhook struct {
	*programConfig
	base    *url.URL
	secret  []byte        // signing key; nil if requests are not signed
	waiting []*feed.Frame // notifications to send again on the next connection, oldest first
	sent    recent        // notifications that were delivered or refused; the feed may send them again on the next connection
}

const (
	postTimeout = 4 * time.Second // less than callTimeout, whose error would not describe the cause
	maxWaiting  = 64              // maximum length of webhook.waiting
)

func webhookKind() kind {
	words := map[string]string{}
	for _, name := range feed.AllKinds() {
		words["frame."+name] = name
	}
	return kind{
		Kind: Kind{Name: "webhook", Title: "a webhook",
			Shows: []string{"states", "tools", "faces", "gestures", "looks", "moods", "speech", "notifications", "questions", "steps"}},
		schemes: []string{"http", "https"},
		words:   words,
		make:    newWebhook,
	}
}

func newWebhook(o *programConfig) (program, error) {
	for _, name := range feed.AllKinds() {
		if word := o.words.get("frame." + name); word != "" && word != name {
			return nil, fmt.Errorf("words.frame.%s is %.40q; leave it out, or leave it empty so that these frames are not sent", name, word)
		}
	}
	p := &webhook{programConfig: o}
	p.base, _ = url.Parse(o.URL)
	if o.Key != "" {
		p.secret = []byte(o.Key)
	}
	if coded, ok := strings.CutPrefix(o.Key, "whsec_"); ok {
		var err error
		if p.secret, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, errors.New("key begins with whsec_, but the rest is not base64; copy the key again")
		}
	}
	return p, nil
}

// open sends a test message, and then the waiting notifications.
func (p *webhook) open(ctx context.Context, note func(error)) (link, error) {
	l := &webhookLink{webhook: p, httpLink: newHTTPLink(remote.Options{Base: p.base, Header: http.Header{"User-Agent": {cmp.Or(p.appliance, "Perch")}},
		Server: remote.Server{Service: "the webhook", Address: remote.Address(p.base), Secrets: []string{p.Key}, Setting: "key", Check: "url"}},
		postTimeout, note)}
	err := l.post(ctx, rand.Text(), []byte(fmt.Sprintf(`{"type":"pong","ts":%d}`, time.Now().Unix())))
	for (err == nil || errors.Is(err, errNotShown)) && len(p.waiting) > 0 {
		err = l.notify(ctx, p.waiting[0])
	}
	if err != nil && !errors.Is(err, errNotShown) {
		l.close()
		return nil, err
	}
	return l, nil
}

// webhookLink is a link to a server. It counts as connected until a request fails.
type webhookLink struct {
	*httpLink
	*webhook
}

func (l *webhookLink) frame(ctx context.Context, f *feed.Frame, _ Scene) error {
	switch {
	case l.words.get("frame."+f.Kind) == "":
		return errNotShown
	case f.Kind == feed.KindNotice:
		return l.notify(ctx, f)
	}
	return l.post(ctx, rand.Text(), f.Data)
}

// notify sends a notification, unless the server has already accepted or refused it. If sending fails, the
// notification is sent again on the next connection.
func (l *webhookLink) notify(ctx context.Context, f *feed.Frame) error {
	id := frameID(f)
	if l.sent.has(id) {
		return nil
	}
	same := func(other *feed.Frame) bool { return bytes.Equal(other.Data, f.Data) }
	err := l.post(ctx, id, f.Data)
	if err != nil && !errors.Is(err, errNotShown) {
		if !slices.ContainsFunc(l.waiting, same) {
			l.waiting = append(l.waiting, f)
			l.waiting = l.waiting[max(0, len(l.waiting)-maxWaiting):]
		}
		return err
	}
	l.waiting = slices.DeleteFunc(l.waiting, same)
	l.sent.add(id)
	return err
}

// post sends a body in a request with an ID. It returns errNotShown if the server refuses this body
// but may accept another.
func (l *webhookLink) post(ctx context.Context, id string, body []byte) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}}
	if l.secret != nil {
		header["Webhook-Signature"] = []string{webhookSignature(l.secret, id, at, body)}
	}
	// The request may be repeated, because the server can recognize a repeat by the ID.
	a, err := l.client.Call(ctx, remote.Request{Method: http.MethodPost, ContentType: "application/json", Header: header, Body: body,
		Repeatable: true, Within: postTimeout})
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(a, limit.Body))
		a.Close()
	}
	fault, ok := errors.AsType[*remote.Fault](err)
	if ok && (fault.Status == http.StatusUnauthorized || fault.Status == http.StatusForbidden) && l.secret != nil {
		return errors.New("the webhook refuses the signature; set key to the webhook's secret, and check the clocks of both machines")
	}
	return l.checkRefusal(err)
}

// webhookSignature returns the signature of a request according to Standard Webhooks. at is the time
// in Unix seconds.
func webhookSignature(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
