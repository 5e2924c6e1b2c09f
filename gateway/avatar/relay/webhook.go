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

// webhook is any HTTP server: each frame, as skins receive it, is the body of one POST. With a
// key it is signed according to Standard Webhooks 1, for which most languages have libraries.
type webhook struct {
	*programConfig
	base   *url.URL
	secret []byte // signing key; nil leaves requests unsigned
	// waiting holds the notifications that could not be delivered, oldest first, and sent those
	// that were: another viewer may confirm one, and a new connection begins with the
	// unconfirmed ones.
	waiting []*feed.Frame
	sent    recent
}

const (
	postWithin = 4 * time.Second // less than callWithin, so that the fault is reported
	mostMissed = 64              // notifications
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
		if word := o.words.of("frame." + name); word != "" && word != name {
			return nil, fmt.Errorf("words.frame.%s is %.40q; it is empty where such frames are not to be sent, or left out", name, word)
		}
	}
	p := &webhook{programConfig: o}
	p.base, _ = url.Parse(o.URL)
	if o.Key != "" {
		p.secret = []byte(o.Key)
	}
	if coded, is := strings.CutPrefix(o.Key, "whsec_"); is {
		var err error
		if p.secret, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, errors.New("key begins with whsec_, and is not base64 after it; copy it anew")
		}
	}
	return p, nil
}

// open sends a test message, and then the notifications that wait.
func (p *webhook) open(ctx context.Context, note func(error)) (link, error) {
	l := &webhookLink{webhook: p, httpLink: newHTTPLink(remote.Options{Base: p.base, Header: http.Header{"User-Agent": {cmp.Or(p.appliance, "Perch")}},
		Server: remote.Server{Service: "the webhook", Address: remote.Address(p.base), Secrets: []string{p.Key}, Setting: "key", Check: "url"}},
		postWithin, note)}
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

// webhookLink lasts as long as the server accepts what it is sent.
type webhookLink struct {
	*httpLink
	*webhook
}

func (l *webhookLink) frame(ctx context.Context, f *feed.Frame, _ Scene) error {
	switch {
	case l.words.of("frame."+f.Kind) == "":
		return errNotShown
	case f.Kind == feed.KindNotice:
		return l.notify(ctx, f)
	}
	return l.post(ctx, rand.Text(), f.Data)
}

// notify sends a notification once. If that fails it waits for the next connection.
func (l *webhookLink) notify(ctx context.Context, f *feed.Frame) error {
	id := idOf(f)
	if l.sent.has(id) {
		return nil
	}
	same := func(other *feed.Frame) bool { return bytes.Equal(other.Data, f.Data) }
	err := l.post(ctx, id, f.Data)
	if err != nil && !errors.Is(err, errNotShown) {
		if !slices.ContainsFunc(l.waiting, same) {
			l.waiting = append(l.waiting, f)
			l.waiting = l.waiting[max(0, len(l.waiting)-mostMissed):]
		}
		return err
	}
	l.waiting = slices.DeleteFunc(l.waiting, same)
	l.sent.add(id)
	return err
}

// post sends a body. It returns errNotShown if the server refuses this body for good.
func (l *webhookLink) post(ctx context.Context, id string, body []byte) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}}
	if l.secret != nil {
		header["Webhook-Signature"] = []string{webhookSignature(l.secret, id, at, body)}
	}
	// Repeatable, because the receiver can recognize a repeat by its id.
	a, err := l.client.Call(ctx, remote.Request{Method: http.MethodPost, ContentType: "application/json", Header: header, Body: body,
		Repeatable: true, Within: postWithin})
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(a, limit.Body))
		a.Close()
	}
	fault, is := errors.AsType[*remote.Fault](err)
	if is && (fault.Status == http.StatusUnauthorized || fault.Status == http.StatusForbidden) && l.secret != nil {
		return errors.New("the webhook refuses the signature; key is the secret that it checks it by, and the clocks of both machines are to be right")
	}
	return l.checkRefusal(err)
}

// webhookSignature signs a request as Standard Webhooks does.
func webhookSignature(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
