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

// memory is what its owner has the appliance remember. It publishes its changes
// itself.
type memory interface {
	Query(q agent.Query, now time.Time) ([]agent.Ranked, error)
	Stats(now time.Time) agent.MemoryStats
	// Err is why Query and Stats may have missed some.
	Err() error
	Remember(e agent.Entry, now time.Time) (agent.Entry, error)
	Edit(id, text string, now time.Time) (agent.Entry, error)
	Forget(id string) error
}

// sourceOwner is the source of what the owner has written.
const sourceOwner = "owner"

// fact is the body of what is to be remembered.
type fact struct {
	Text      string    `json:"text"`
	Type      string    `json:"type"` // this and what follows is not for an edit, which leaves it as it was
	Tags      []string  `json:"tags"`
	Important bool      `json:"important"`
	Expires   time.Time `json:"expires"`
}

// check makes one line of the text, as brains are shown it.
func (f *fact) check() error {
	if f.Text = agent.Speakable(f.Text); f.Text == "" || len(f.Text) > limit.Line {
		return httpserver.BadBody("text is needed, of at most 1000 bytes")
	}
	return agent.CheckMemoryType(f.Type)
}

// mostRecalled bounds what one request is answered with.
const mostRecalled = 10_000

// recall answers a query, the best first: q is words, type and tag what an entry has
// (tag may be given several times), n the most entries.
func (d *API) recall(asked url.Values, now time.Time) ([]agent.Ranked, error) {
	n, err := strconv.Atoi(cmp.Or(asked.Get("n"), strconv.Itoa(mostRecalled)))
	if err != nil || n < 1 || n > mostRecalled {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "n is a number from 1 to 10000", HTTP: http.StatusBadRequest}
	}
	found, err := d.o.Memory.Query(agent.Query{Text: asked.Get("q"), Type: asked.Get("type"), Tags: asked["tag"], N: n}, now)
	return found, cmp.Or(err, d.o.Memory.Err())
}

// remember keeps a fact of the household's: it belongs to no robot.
func (d *API) remember(f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return d.o.Memory.Remember(agent.Entry{Name: f.Text, Body: f.Text, Type: f.Type, Tags: f.Tags, Important: f.Important,
		Expires: f.Expires, Source: sourceOwner}, time.Now())
}

func (d *API) edit(id string, f fact) (agent.Entry, error) {
	if err := f.check(); err != nil {
		return agent.Entry{}, err
	}
	return d.o.Memory.Edit(id, f.Text, time.Now())
}
