package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"perch/language"
	"perch/limit"
	"perch/packaging/image/board"
)

//go:embed page.html
var pageText string

// page is the web page for phones at the access point. It accepts one form at a time.
type page struct {
	token    string // of this run, known only to visitors of the page
	template *template.Template
	words    language.Catalogue
	all      []choice                // the languages, by their own names
	options  map[language.Tag]string // for the countries
	fits     func(ctx context.Context, key, value string) (bool, error)
	forms    chan form // receives a form once the answer is on its way

	mu      sync.Mutex
	shown   shown
	host    string // its host name; other hosts redirect there
	busy    bool   // a form is being handled
	used    time.Time
	senders map[string]*rate.Limiter
}

// shown is the content of the page.
type shown struct {
	accessPoint    string
	networks       []scanned
	failed         error  // why the last network was not joined
	tried          string // name of that network
	country        string
	name, language string // of the appliance
}

func newPage(fits func(ctx context.Context, key, value string) (bool, error)) *page {
	p := &page{token: rand.Text(), template: template.Must(template.New("").Parse(pageText)), options: map[language.Tag]string{}, fits: fits,
		forms: make(chan form, 1), senders: map[string]*rate.Limiter{}}
	for _, tag := range language.All() {
		for _, c := range countries(tag) {
			p.options[tag] += fmt.Sprintf("<option value=\"%s\">%s</option>\n", c.Value, template.HTMLEscapeString(c.Name))
		}
		p.all = append(p.all, choice{string(tag), p.words.In(string(tag)).Name()})
	}
	return p
}

// setContent sets the host and the content of the page, for a new access point.
func (p *page) setContent(host string, s shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host, p.shown, p.busy = host, s, false
}

// lastUsed returns when the page was last visited.
func (p *page) lastUsed() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

const (
	mostAtOnce  = 5
	perSecond   = 0.5
	mostSenders = 256 // more than the access point has addresses
)

// tooOften reports whether an address submits forms too often. The lock is held.
func (p *page) tooOften(address string, now time.Time) bool {
	s := p.senders[address]
	if s == nil {
		if len(p.senders) >= mostSenders {
			clear(p.senders)
		}
		s = rate.NewLimiter(perSecond, mostAtOnce)
		p.senders[address] = s
	}
	return !s.AllowN(now, 1)
}

// ServeHTTP redirects all other requests of a phone to the page: so Android, iOS, Windows and
// Firefox detect that a page has to be visited first.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	host := p.host
	p.mu.Unlock()
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if r.Host != host || r.URL.Path != "/" {
		h.Set("Connection", "close") // the rest of the request is not read
		h.Set("Location", "http://"+host+"/")
		w.WriteHeader(http.StatusFound)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		p.render(w, r, http.StatusOK, nil, "")
	case http.MethodPost:
		p.handleForm(w, r)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		h.Set("Connection", "close")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// handleForm handles a submitted form.
func (p *page) handleForm(w http.ResponseWriter, r *http.Request) {
	say := p.wordsFor(r)
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	p.mu.Lock()
	often, busy := p.tooOften(address, time.Now()), p.busy
	p.mu.Unlock()
	if often || busy {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "60")
		if busy {
			refuse(w, say, http.StatusServiceUnavailable, say.Message("portal.busy"))
		} else {
			refuse(w, say, http.StatusTooManyRequests, say.Message("portal.often"))
		}
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit.Data)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err := r.ParseForm(); err != nil || kind != "application/x-www-form-urlencoded" {
		status := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, say, status, say.Message("portal.old"))
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get(fieldToken)), []byte(p.token)) != 1 {
		refuse(w, say, http.StatusForbidden, say.Message("portal.old"))
		return
	}
	f, wrong := parseForm(r.PostForm)
	if wrong != "" {
		p.render(w, r, http.StatusUnprocessableEntity, nil, fieldProblem(say, wrong))
		return
	}
	p.mu.Lock()
	busy, p.busy = p.busy, true
	p.mu.Unlock()
	if busy {
		refuse(w, say, http.StatusServiceUnavailable, say.Message("portal.busy"))
		return
	}
	p.render(w, r, http.StatusOK, &f, "")
	_ = http.NewResponseController(w).Flush()
	p.forms <- f // does not block: one form at a time is accepted
}

// refuse answers a form without reading it, at little cost, since there may be many.
func refuse(w http.ResponseWriter, say *language.Words, status int, sentence string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!DOCTYPE html><html lang=%q><meta name=viewport content=\"width=device-width\"><title>Perch</title><p role=alert>%s</p>"+
		"<p><a href=\"/?lang=%s\">%s</a></p></html>\n", say.Tag, sentence, say.Tag, say.Message("portal.title"))
}

// option is a network in the list.
type option struct {
	Value, Name string
	Unfit       bool
}

// view is the data of the page's template.
type view struct {
	W                                  *language.Words
	Nonce, Token, AccessPoint, Problem string
	Heard                              []option
	Network, SSID, Name, Speaks        string
	Countries                          template.HTML
	Languages                          []choice
	Taken                              string // the network being joined
	Unspoken                           bool   // Perch does not support the language
}

// render writes the page, with an accepted form or a problem.
func (p *page) render(w http.ResponseWriter, r *http.Request, status int, taken *form, problem string) {
	p.mu.Lock()
	s := p.shown
	if status == http.StatusOK {
		p.used = time.Now()
	}
	p.mu.Unlock()
	v := view{W: p.wordsFor(r), Nonce: rand.Text(), Token: p.token, AccessPoint: s.accessPoint, Problem: problem, Name: s.name, Speaks: s.language,
		Languages: p.all}
	if !slices.ContainsFunc(p.all, func(c choice) bool { return c.Value == s.language }) {
		v.Languages = append([]choice{{"", s.language}}, p.all...) // the language may stay as it is
	}
	country := cmp.Or(s.country, regionOf(r.Header.Get("Accept-Language")))
	for _, one := range s.networks {
		v.Heard = append(v.Heard, option{hex.EncodeToString([]byte(one.SSID)), one.label(v.W), one.Unfit})
	}
	if problem == "" && s.failed != nil && taken == nil {
		v.Problem = joinProblem(v.W, s.failed, plain(s.tried))
		v.Network = hex.EncodeToString([]byte(s.tried))
		if !slices.ContainsFunc(s.networks, func(one scanned) bool { return one.SSID == s.tried }) {
			v.SSID = plain(s.tried)
		}
	}
	if status == http.StatusUnprocessableEntity { // for correcting a field the other choices are kept
		get := r.PostForm.Get
		v.Network, v.SSID, country, v.Name, v.Speaks = get(fieldNetwork), get(fieldSSID), get(fieldCountry), get(fieldName), get(fieldLanguage)
	}
	if taken != nil && problem == "" {
		v.Taken = plain(taken.network.SSID)
		v.Name = cmp.Or(taken.name, v.Name)
		if taken.language != "" && taken.language != s.language {
			if fits, err := p.fits(r.Context(), "language", taken.language); err == nil {
				v.Unspoken = !fits
			}
		}
	}
	options := p.options[v.W.Tag]
	v.Countries = template.HTML(options) // our own text
	if board.IsCountry(country) {
		v.Countries = template.HTML(strings.Replace(options, `"`+country+`"`, `"`+country+`" selected`, 1))
	}
	var text bytes.Buffer
	if err := p.template.Execute(&text, v); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+v.Nonce+"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the phone may have gone
}

// plain returns a network's name for display.
func plain(ssid string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(ssid, "\uFFFD"))
}
