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

// page is the web page that the access point serves to phones. It accepts one form at a time.
type page struct {
	token     string // random for each run; forms must contain it
	template  *template.Template
	words     language.Catalogue
	languages []choice                // all languages, each with its name in that language
	countries map[language.Tag]string // HTML options for the countries, in each language
	accepts   func(ctx context.Context, key, value string) (bool, error)
	forms     chan form // receives an accepted form once the response is on its way

	mu      sync.Mutex
	content content
	host    string                   // host name of the page; requests for other hosts are redirected
	busy    bool                     // a form is being handled
	used    time.Time                // last visit
	senders map[string]*rate.Limiter // key: IP address
}

// content is the content of the page for one access point.
type content struct {
	accessPoint string
	networks    []scanned
	failed      error  // why the network named in tried was not joined; nil if it was joined, or if no network was tried
	tried       string // name of the network that the machine tried to join last
	country     string // country in the latest form
	name        string // name of the appliance
	language    string // language of the appliance
}

// newPage returns a page without content. The function accepts reports whether Perch accepts a
// value for a key of Perch's configuration.
func newPage(accepts func(ctx context.Context, key, value string) (bool, error)) *page {
	p := &page{token: rand.Text(), template: template.Must(template.New("").Parse(pageText)), countries: map[language.Tag]string{}, accepts: accepts,
		forms: make(chan form, 1), senders: map[string]*rate.Limiter{}}
	for _, tag := range language.All() {
		for _, c := range countries(tag) {
			p.countries[tag] += fmt.Sprintf("<option value=\"%s\">%s</option>\n", c.Value, template.HTMLEscapeString(c.Name))
		}
		p.languages = append(p.languages, choice{string(tag), p.words.In(string(tag)).Name()})
	}
	return p
}

// setContent sets the host and the content of the page, for a new access point. The page accepts a form
// again.
func (p *page) setContent(host string, c content) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host, p.content, p.busy = host, c, false
}

// lastUsed returns the time of the last visit of the page.
func (p *page) lastUsed() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Limits of the forms from one address.
const (
	maxBurst   = 5   // forms at once
	perSecond  = 0.5 // forms per second
	maxSenders = 256 // addresses that are counted; there are fewer at an access point
)

// tooOften counts a form from an address, and reports whether the address submits forms too often.
// p.mu must be held.
func (p *page) tooOften(address string, now time.Time) bool {
	s := p.senders[address]
	if s == nil {
		if len(p.senders) >= maxSenders {
			clear(p.senders)
		}
		s = rate.NewLimiter(perSecond, maxBurst)
		p.senders[address] = s
	}
	return !s.AllowN(now, 1)
}

// ServeHTTP implements http.Handler. It redirects requests for other hosts or paths to the page. When
// Android, iOS, Windows and Firefox test the network and receive this redirect, they offer to open the
// page.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	host := p.host
	p.mu.Unlock()
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if r.Host != host || r.URL.Path != "/" {
		h.Set("Connection", "close") // do not read the rest of the request
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
	words := p.wordsFor(r)
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	p.mu.Lock()
	often, busy := p.tooOften(address, time.Now()), p.busy
	p.mu.Unlock()
	if often || busy {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "60")
		if busy {
			refuse(w, words, http.StatusServiceUnavailable, words.Message("portal.busy"))
		} else {
			refuse(w, words, http.StatusTooManyRequests, words.Message("portal.often"))
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
		refuse(w, words, status, words.Message("portal.old"))
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get(fieldToken)), []byte(p.token)) != 1 {
		refuse(w, words, http.StatusForbidden, words.Message("portal.old"))
		return
	}
	f, invalidField := parseForm(r.PostForm)
	if invalidField != "" {
		p.render(w, r, http.StatusUnprocessableEntity, nil, fieldProblem(words, invalidField))
		return
	}
	p.mu.Lock()
	busy, p.busy = p.busy, true
	p.mu.Unlock()
	if busy {
		refuse(w, words, http.StatusServiceUnavailable, words.Message("portal.busy"))
		return
	}
	p.render(w, r, http.StatusOK, &f, "")
	_ = http.NewResponseController(w).Flush()
	p.forms <- f // cannot block, because p.busy admits only one form
}

// refuse responds to a refused form with a small page. Producing it takes little time, because there may
// be many such forms.
func refuse(w http.ResponseWriter, words *language.Words, status int, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!DOCTYPE html><html lang=%q><meta name=viewport content=\"width=device-width\"><title>Perch</title><p role=alert>%s</p>"+
		"<p><a href=\"/?lang=%s\">%s</a></p></html>\n", words.Tag, message, words.Tag, words.Message("portal.title"))
}

// option is a network in the selection list of the page.
type option struct {
	Value, Name string
	Unfit       bool
}

// view is the data of the page's template.
type view struct {
	W                                  *language.Words // texts of the page
	Nonce, Token, AccessPoint, Problem string
	Heard                              []option // networks in range
	Network, SSID, Name, Speaks        string   // values of the form's fields; Speaks is the appliance's language
	Countries                          template.HTML
	Languages                          []choice
	Taken                              string // network in the form that was just accepted, or empty
	Unspoken                           bool   // Perch does not support the chosen language
}

// render writes the page. accepted is the form that was just accepted, or nil; problem is a
// message about an invalid form, or empty.
func (p *page) render(w http.ResponseWriter, r *http.Request, status int, accepted *form, problem string) {
	p.mu.Lock()
	c := p.content
	if status == http.StatusOK {
		p.used = time.Now()
	}
	p.mu.Unlock()
	v := view{W: p.wordsFor(r), Nonce: rand.Text(), Token: p.token, AccessPoint: c.accessPoint, Problem: problem, Name: c.name, Speaks: c.language,
		Languages: p.languages}
	if !slices.ContainsFunc(p.languages, func(l choice) bool { return l.Value == c.language }) {
		v.Languages = append([]choice{{"", c.language}}, p.languages...) // an option that does not change the language
	}
	country := cmp.Or(c.country, regionOf(r.Header.Get("Accept-Language")))
	for _, network := range c.networks {
		v.Heard = append(v.Heard, option{hex.EncodeToString([]byte(network.SSID)), network.label(v.W), network.Unfit})
	}
	if problem == "" && c.failed != nil && accepted == nil {
		v.Problem = joinProblem(v.W, c.failed, plain(c.tried))
		v.Network = hex.EncodeToString([]byte(c.tried))
		if !slices.ContainsFunc(c.networks, func(network scanned) bool { return network.SSID == c.tried }) {
			v.SSID = plain(c.tried)
		}
	}
	if status == http.StatusUnprocessableEntity { // show the submitted values again, for correction
		get := r.PostForm.Get
		v.Network, v.SSID, country, v.Name, v.Speaks = get(fieldNetwork), get(fieldSSID), get(fieldCountry), get(fieldName), get(fieldLanguage)
	}
	if accepted != nil && problem == "" {
		v.Taken = plain(accepted.network.SSID)
		v.Name = cmp.Or(accepted.name, v.Name)
		if accepted.language != "" && accepted.language != c.language {
			if accepts, err := p.accepts(r.Context(), "language", accepted.language); err == nil {
				v.Unspoken = !accepts
			}
		}
	}
	options := p.countries[v.W.Tag]
	v.Countries = template.HTML(options) // safe: escaped by newPage
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
	_, _ = w.Write(text.Bytes()) // fails if the phone has disconnected
}

// plain returns a network's name for display. It replaces control characters and invalid UTF-8.
func plain(ssid string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(ssid, "\uFFFD"))
}
