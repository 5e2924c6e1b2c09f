package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
)

// maxRecalled bounds the entries of one response.
const maxRecalled = 10_000

// recall returns the entries that match a query, the best match first. The query parameters are q, the words to
// search for; type; tag, which may occur several times; and n, the maximum number of entries. With n alone, it
// returns the newest entries, the newest first.
func (a *API) recall(query url.Values, now time.Time) ([]agent.Ranked, error) {
	n, err := strconv.Atoi(cmp.Or(query.Get("n"), strconv.Itoa(maxRecalled)))
	if err != nil || n < 1 || n > maxRecalled {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "n is a number from 1 to 10000", HTTP: http.StatusBadRequest}
	}
	q := agent.Query{Text: query.Get("q"), Type: query.Get("type"), Tags: query["tag"], N: n}
	latest := query.Has("n") && q.Text == "" && q.Type == "" && len(q.Tags) == 0
	if latest {
		q.N = 0
	}
	found, err := a.o.Memory.Query(q, now)
	if latest {
		slices.SortStableFunc(found, func(x, y agent.Ranked) int { return y.Created.Compare(x.Created) })
		found = found[:min(len(found), n)]
	}
	return found, cmp.Or(err, a.o.Memory.Err())
}

// remember stores a fact that belongs to no robot.
func (a *API) remember(f agent.Fact) (agent.Entry, error) {
	e, err := f.Entry()
	if err != nil {
		return agent.Entry{}, err
	}
	e.Source = "owner"
	return a.o.Memory.Remember(e, time.Now())
}

// editMemory replaces the text of an entry.
func (a *API) editMemory(id string, f agent.Fact) (agent.Entry, error) {
	e, err := f.Entry()
	if err != nil {
		return agent.Entry{}, err
	}
	return a.o.Memory.Edit(id, e.Body, time.Now())
}
