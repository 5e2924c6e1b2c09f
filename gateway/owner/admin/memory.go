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

// fact is the body of a request to remember or edit an entry. An edit uses only Text.
type fact struct {
	Text      string    `json:"text"`
	Type      string    `json:"type"`
	Tags      []string  `json:"tags"`
	Important bool      `json:"important"`
	Expires   time.Time `json:"expires"`
}

// check checks the body, and replaces the text by the single line that brains get.
func (f *fact) check() error {
	if f.Text = agent.Speakable(f.Text); f.Text == "" || len(f.Text) > limit.Line {
		return httpserver.BadBody("text is needed, of at most 1000 bytes")
	}
	return agent.CheckMemoryType(f.Type)
}

// maxRecalled bounds the entries of one response.
const maxRecalled = 10_000

// recall returns the entries that match a query, the best match first. The query parameters are q, the words to
// search for; type; tag, which may occur several times; and n, the maximum number of entries.
func (a *API) recall(query url.Values, now time.Time) ([]agent.Ranked, error) {
	n, err := strconv.Atoi(cmp.Or(query.Get("n"), strconv.Itoa(maxRecalled)))
	if err != nil || n < 1 || n > maxRecalled {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "n is a number from 1 to 10000", HTTP: http.StatusBadRequest}
	}
	found, err := a.o.Memory.Query(agent.Query{Text: query.Get("q"), Type: query.Get("type"), Tags: query["tag"], N: n}, now)
	return found, cmp.Or(err, a.o.Memory.Err())
}

// remember stores a fact about the household, which belongs to no robot.
func (a *API) remember(f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return a.o.Memory.Remember(agent.Entry{Name: f.Text, Body: f.Text, Type: f.Type, Tags: f.Tags, Important: f.Important,
		Expires: f.Expires, Source: "owner"}, time.Now())
}

// editMemory replaces the text of an entry.
func (a *API) editMemory(id string, f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return a.o.Memory.Edit(id, f.Text, time.Now())
}
