package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
)

// fact is the body of an entry to remember. An edit uses only its text.
type fact struct {
	Text      string    `json:"text"`
	Type      string    `json:"type"`
	Tags      []string  `json:"tags"`
	Important bool      `json:"important"`
	Expires   time.Time `json:"expires"`
}

// check checks the body, and makes one line of the text, as brains are shown it.
func (f *fact) check() error {
	if f.Text = agent.Speakable(f.Text); f.Text == "" || len(f.Text) > limit.Line {
		return httpserver.BadBody("text is needed, of at most 1000 bytes")
	}
	return agent.CheckMemoryType(f.Type)
}

// mostRecalled bounds the entries of one answer.
const mostRecalled = 10_000

// recall returns the entries for a query, best first. Parameters are q, words; type; tag, which may be given
// several times; n, the most entries.
func (a *API) recall(asked url.Values, now time.Time) ([]agent.Ranked, error) {
	n, err := strconv.Atoi(cmp.Or(asked.Get("n"), strconv.Itoa(mostRecalled)))
	if err != nil || n < 1 || n > mostRecalled {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "n is a number from 1 to 10000", HTTP: http.StatusBadRequest}
	}
	found, err := a.o.Memory.Query(agent.Query{Text: asked.Get("q"), Type: asked.Get("type"), Tags: asked["tag"], N: n}, now)
	return found, cmp.Or(err, a.o.Memory.Err())
}

// remember stores a fact of the household, of no robot.
func (a *API) remember(f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return a.o.Memory.Remember(agent.Entry{Name: f.Text, Body: f.Text, Type: f.Type, Tags: f.Tags, Important: f.Important,
		Expires: f.Expires, Source: "owner"}, time.Now())
}

func (a *API) edit(id string, f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return a.o.Memory.Edit(id, f.Text, time.Now())
}
