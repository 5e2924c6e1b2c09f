package agent_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/must"
	"perch/store/storetest"
)

// TestSalienceAndScore tests the salience for types and tags, and the score after a half-life.
func TestSalienceAndScore(t *testing.T) {
	for _, c := range []struct {
		e    agent.Entry
		want float64
	}{
		{agent.Entry{Type: agent.MemoryFeedback}, 0.8}, {agent.Entry{Type: agent.MemoryUser}, 0.7},
		{agent.Entry{Type: agent.MemoryProject}, 0.6}, {agent.Entry{Type: agent.MemoryReference}, 0.5},
		{agent.Entry{Type: agent.MemoryReference, Tags: []string{"a", "b"}}, 0.6},
		{agent.Entry{Type: agent.MemoryFeedback, Tags: []string{"a", "b", "c", "d", "e", "f"}}, 1},
		{agent.Entry{Type: agent.MemoryReference, Tags: []string{"a", "b", "c", "d", "e", "f"}}, 0.7},
		{agent.Entry{Type: agent.MemoryReference, Important: true}, 1},
	} {
		c.e.Created = noon
		if got := c.e.Salience(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: salience %g, want %g", c.e, got, c.want)
		}
		if got := c.e.Score(noon.Add(7 * 24 * time.Hour)); math.Abs(got-c.want*math.Exp(-0.693)) > 1e-9 {
			t.Errorf("%+v: after a week %g", c.e, got)
		}
	}
}

// TestAQueryIsRanked tests which entries a query selects, and their order.
func TestAQueryIsRanked(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for _, e := range []agent.Entry{
		{Body: "where the lamp is", Type: agent.MemoryReference, Tags: []string{"lamp", "#Desk"}},
		{Body: "no bright lamp", Type: agent.MemoryFeedback, Tags: []string{"lamp"}},
		{Body: "Ann likes the lamp"},
		{Body: "gone soon", Type: agent.MemoryFeedback, Expires: noon.Add(time.Hour)},
	} {
		must.Value(m.Remember(e, noon))(t)
	}
	for _, c := range []struct {
		q    agent.Query
		want string
	}{
		{agent.Query{}, "no bright lamp, Ann likes the lamp, where the lamp is"},
		{agent.Query{N: 1}, "no bright lamp"},
		{agent.Query{Type: agent.MemoryUser}, "Ann likes the lamp"},
		{agent.Query{Tags: []string{"lamp"}}, "no bright lamp, where the lamp is"},
		{agent.Query{Tags: []string{"LAMP", "desk"}}, "where the lamp is"},
		{agent.Query{Text: "LAMP ann"}, "Ann likes the lamp"},
	} {
		if got := query(t, m, c.q, noon.Add(2*time.Hour)); got != c.want {
			t.Errorf("%+v: %q", c.q, got)
		}
	}
	if _, err := m.Query(agent.Query{Type: "fact"}, noon); !errors.Is(err, agent.ErrEntry) {
		t.Errorf("an unknown type: %v", err)
	}
	if s := m.Stats(noon); s.Entries != 4 || s.Types[agent.MemoryFeedback] != 2 || s.Tags["lamp"] != 2 || s.Most != 2000 {
		t.Errorf("stats: %+v", s)
	}
}

// TestInvalidEntries tests that invalid entries are refused with a short error.
func TestInvalidEntries(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for sentence, e := range map[string]agent.Entry{
		"ten years":     {Expires: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		"in the future": {Expires: time.Date(1, 6, 1, 0, 0, 0, 0, time.UTC)},
		"expires must":  {Expires: noon},
		"a tag is":      {Tags: []string{"two words"}},
		"at most 8":     {Tags: strings.Fields("a b c d e f g h i")},
		"most 8 tags":   {Tags: numbered(10_000)},
		"of at most 4":  {Tags: []string{strings.Repeat("x", 41)}},
		"at most 40":    {Tags: []string{strings.Repeat("x", 10<<10)}},
		"is one word":   {Tags: []string{""}},
	} {
		e.Body = "x"
		if _, err := m.Remember(e, noon); !errors.Is(err, agent.ErrEntry) || !strings.Contains(err.Error(), sentence) || len(err.Error()) > 300 {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if found := m.Search("", noon); len(found) > 0 {
		t.Errorf("it remembers %+v", found)
	}
}

// numbered returns n different tags.
func numbered(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("tag", i))
	}
	return tags
}

// TestInvalidQueries tests that invalid queries are refused with a short error.
func TestInvalidQueries(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for sentence, q := range map[string]agent.Query{
		"type is one of": {Type: strings.Repeat("fact", 1000)},
		"at most 8 tags": {Tags: numbered(10_000)},
		"a tag is":       {Tags: []string{strings.Repeat("x", 10<<10)}},
		"16 words":       {Text: strings.Repeat("a ", 17)},
		"500 bytes":      {Text: strings.Repeat("x", 501)},
	} {
		if _, err := m.Query(q, noon); !errors.Is(err, agent.ErrEntry) || !strings.Contains(err.Error(), sentence) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

// FuzzQuery tests that any query is refused with an error that wraps ErrEntry, or returns
// entries of the requested type and number in the order of their scores.
func FuzzQuery(f *testing.F) {
	f.Add("user", "tea", "lamp", 3)
	f.Add("", "\xff \x00 İ", "#Lamp", 0)
	f.Add("gossip", strings.Repeat("a ", 20), "two words", -1)
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for i := range 40 {
		e := agent.Entry{Body: fmt.Sprint("Ann likes tea ", i, " 緑茶 İ"), Type: agent.MemoryTypes()[i%4], Tags: []string{"lamp", fmt.Sprint("t", i%3)}}
		must.Value(m.Remember(e, noon.Add(time.Duration(i)*time.Hour)))(f)
	}
	f.Fuzz(func(t *testing.T, kind, text, tag string, n int) {
		q := agent.Query{Type: kind, Text: text, N: n}
		if tag != "" {
			q.Tags = []string{tag}
		}
		found, err := m.Query(q, noon.Add(90*time.Hour))
		if err != nil {
			if !errors.Is(err, agent.ErrEntry) || len(err.Error()) > 400 || len(found) > 0 {
				t.Fatal(err, found)
			}
			return
		}
		if n > 0 && len(found) > n {
			t.Fatalf("%d were asked for, and %d found", n, len(found))
		}
		for i, e := range found {
			if kind != "" && e.Type != kind || i > 0 && e.Score > found[i-1].Score {
				t.Fatalf("%+v finds %+v", q, found)
			}
		}
	})
}

// TestAFullMemoryForgetsByRank tests that a full memory evicts expired entries first, then the
// entry with the lowest score.
func TestAFullMemoryForgetsByRank(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(3)
	for i, e := range []agent.Entry{
		{Body: "kept", Important: true},
		{Body: "expired", Type: agent.MemoryFeedback, Expires: noon.Add(90 * time.Minute)},
		{Body: "reference", Type: agent.MemoryReference},
		{Body: "user"}, {Body: "feedback", Type: agent.MemoryFeedback},
	} {
		must.Value(m.Remember(e, noon.Add(time.Duration(i)*time.Hour)))(t)
		var bodies []string
		for _, e := range m.Search("", noon.Add(time.Duration(i)*time.Hour)) {
			bodies = append(bodies, e.Body)
		}
		want := []string{"kept", "kept expired", "kept reference", "kept reference user", "kept user feedback"}[i]
		if strings.Join(bodies, " ") != want {
			t.Errorf("%d: %q, want %q", i, bodies, want)
		}
	}
}

// TestAnnounce tests that Announce reports remembered entries, except those of strangers.
func TestAnnounce(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	var told []string
	m.Announce(func(e agent.Entry) { told = append(told, e.Session+" "+e.Body) })
	for _, turn := range []agent.Turn{{}, {Robot: "0200000000ff", Untrusted: true}} {
		must.Value(m.Of(turn).Remember(agent.Entry{Body: "x", Session: "s"}, noon))(t)
	}
	if len(told) != 1 || told[0] != "s x" {
		t.Errorf("told %q", told)
	}
}

// TestReadNote tests ParseNote and IsNotePrefix.
func TestReadNote(t *testing.T) {
	for content, want := range map[string]agent.Note{
		"REMEMBER: a  fact":                            {Text: "a fact"},
		"remember feedback #lamp #desk: no: light":     {Text: "no: light", Type: agent.MemoryFeedback, Tags: "lamp desk"},
		"Remember important project: the move":         {Text: "the move", Type: agent.MemoryProject, Important: true},
		"remember reference #" + "x" + ": a place, so": {Text: "a place, so", Type: agent.MemoryReference, Tags: "x"},
	} {
		if got, is := agent.ParseNote(content); !is || got != want {
			t.Errorf("%q: %+v, %v", content, got, is)
		}
		for n := range len(content) {
			if head := content[:n]; n > 0 && !strings.Contains(head, ":") && !agent.IsNotePrefix(head) {
				t.Errorf("%q does not begin a note", head)
			}
		}
	}
	for _, content := range []string{"remember me: x", "remembering: x", "remember", "happy", "remember #a b c: x"} {
		if got, is := agent.ParseNote(content); is {
			t.Errorf("%q: %+v", content, got)
		}
	}
	if agent.IsNotePrefix("remember me") || agent.IsNotePrefix("remember the") {
		t.Error("words in brackets are held back")
	}
}

// TestEntriesAreOrderedByScore tests that queries return entries in the order of their scores
// at any time, after random changes. The order of the index does not depend on the time.
func TestEntriesAreOrderedByScore(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	table := &storetest.Table[agent.Entry]{}
	m := agent.NewMemory(table)
	m.Bound(150)
	now := noon
	for range 600 {
		now = now.Add(time.Duration(r.Int64N(int64(20 * time.Hour))))
		e := agent.Entry{Key: fmt.Sprint(r.IntN(200)), Body: fmt.Sprint("fact ", r.IntN(9)), Type: agent.MemoryTypes()[r.IntN(4)],
			Important: r.IntN(9) == 0, Tags: strings.Fields("a b c d e f")[:r.IntN(7)]}
		if r.IntN(4) == 0 {
			e.Expires = now.Add(time.Duration(r.Int64N(int64(1000*time.Hour))) + 1)
		}
		kept, err := m.Remember(e, now)
		if err == nil && r.IntN(3) == 0 {
			_, err = m.Edit(kept.ID, "another fact", now)
		}
		m.Recall(fmt.Sprint(r.IntN(200)), now)
		if err == nil && r.IntN(9) == 0 {
			err = m.Forget(kept.ID)
		}
		must.Succeed(t, err)
	}
	for _, again := range []*agent.Memory{m, agent.NewMemory(table)} { // the second reads the table, as after a restart
		for _, late := range []time.Duration{0, time.Hour, 30 * 24 * time.Hour} {
			for _, q := range []agent.Query{{}, {Text: "fact 3"}, {Type: agent.MemoryFeedback, Tags: []string{"b"}}, {N: 7},
				{Text: "another", N: 1}} {
				found := must.Value(again.Query(q, now.Add(late)))(t)
				want := bruteForce(table, q, now.Add(late))
				if len(found) != len(want) {
					t.Fatalf("seed %d: %+v finds %d, want %d", seed, q, len(found), len(want))
				}
				for i, e := range found { // computed scores may differ in the last bit
					if math.Abs(e.Score-want[i]) > 1e-12 || e.Score != e.Entry.Score(now.Add(late)) {
						t.Fatalf("seed %d: %+v: the score at %d is %g, want %g", seed, q, i, e.Score, want[i])
					}
				}
			}
		}
	}
}

// bruteForce returns the scores of the entries that a query must find, the highest first.
func bruteForce(table *storetest.Table[agent.Entry], q agent.Query, now time.Time) (scores []float64) {
	for _, e := range table.All() {
		is := (q.Type == "" || e.Type == q.Type) && (e.Expires.IsZero() || e.Expires.After(now))
		for _, tag := range q.Tags {
			is = is && slices.Contains(e.Tags, tag)
		}
		for _, w := range strings.Fields(q.Text) {
			is = is && strings.Contains(e.Key+" "+e.Name+" "+e.Body+" "+strings.Join(e.Tags, " "), w)
		}
		if is {
			scores = append(scores, e.Score(now))
		}
	}
	slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
	if q.N > 0 {
		scores = scores[:min(q.N, len(scores))]
	}
	return scores
}

// TestEntriesOfWrongClocks tests that stored entries from the years 1 to 9999 are found,
// recalled and evicted in their order.
func TestEntriesOfWrongClocks(t *testing.T) {
	table := &storetest.Table[agent.Entry]{}
	for id, year := range map[string]int{"a": 1, "b": 1969, "c": 2026, "d": 9999} {
		at := time.Date(year, 1, 2, 3, 4, 5, 6, time.UTC)
		must.Succeed(t, table.Put(id, agent.Entry{ID: id, Key: id, Name: id, Body: id, Type: agent.MemoryUser, Created: at}))
	}
	m := agent.NewMemory(table)
	m.Bound(4)
	ids := func() (ids string) {
		found, err := m.Query(agent.Query{}, noon)
		for _, e := range found {
			if ids += e.ID; !(e.Score >= 0 && e.Score <= 1) || err != nil {
				t.Errorf("%s has the score %g, %v", e.ID, e.Score, err)
			}
		}
		return ids
	}
	if got := ids(); got != "dcba" {
		t.Errorf("the order is %s", got)
	}
	if e, there := m.Recall("a", noon); !there || !e.Used.Equal(noon) || ids() != "dacb" {
		t.Errorf("used: %+v, the order is %s", e, ids())
	}
	if _, err := m.Remember(agent.Entry{Body: "new"}, noon); err != nil || strings.Contains(ids(), "b") || len(table.Kept) != 4 {
		t.Errorf("the oldest is still there: %s, %v", ids(), err)
	}
}

// BenchmarkMemory searches ten thousand entries.
func BenchmarkMemory(b *testing.B) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(10_000)
	for n := range 10_000 {
		e := agent.Entry{Type: agent.MemoryTypes()[n%4], Tags: []string{fmt.Sprint("tag", n%50), "all"},
			Body: fmt.Sprintf("Fact number %d is that a neighbour has a cat, and that Ann likes her tea %s", n, strings.Repeat("green ", n%20))}
		must.Value(m.Remember(e, noon.Add(time.Duration(n)*time.Minute)))(b)
	}
	many := "fact number is that neighbour has cat and ann likes her tea umbe eigh umbrella"
	for _, c := range []struct {
		name string
		agent.Query
		found int
	}{
		{"all", agent.Query{}, 10_000}, {"best", agent.Query{N: 20}, 20}, {"words", agent.Query{Text: "neighbour 99 tea", N: 20}, 20},
		{"tags", agent.Query{Type: agent.MemoryUser, Tags: []string{"tag0"}, N: 50}, 50},
		{"one word", agent.Query{Text: "number"}, 10_000}, {"no entry", agent.Query{Text: "umbrella"}, 0}, {"many words", agent.Query{Text: many}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, err := m.Query(c.Query, noon.Add(1000*time.Hour)); err != nil || len(found) != c.found {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}

// BenchmarkPartsOfFacts searches ten thousand entries, each of which contains every part of the query.
func BenchmarkPartsOfFacts(b *testing.B) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(10_000)
	for n := range 10_000 {
		must.Value(m.Remember(agent.Entry{Body: fmt.Sprint("玄関に鍵があり、妹の誕生日は三月五日です。", n)}, noon))(b)
	}
	for b.Loop() {
		if found, err := m.Query(agent.Query{Text: "玄関の鍵と三月五日の誕生日", N: 20}, noon); err != nil || len(found) != 20 {
			b.Fatal(len(found), err)
		}
	}
}

// TestFactsWithoutSpaces tests that a question in Japanese, Chinese or Thai finds the facts that
// contain many of its parts, and that facts in English must contain all words.
func TestFactsWithoutSpaces(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for _, body := range []string{"玄関に鍵があります。", "アンは緑茶が好きです。", "ベンはコーヒーが大好き。", "妹の誕生日は三月五日です。", "毎朝七時に起きる。",
		"你的手机在厨房里。", "安娜喜欢绿茶。", "妈妈的生日是五月三号。", "他每天早上七点起床。", "Ann likes green tea.", "วันเกิดของแม่คือวันที่ห้า"} {
		must.Value(m.Remember(agent.Entry{Body: body}, noon))(t)
	}
	for asked, want := range map[string]string{
		"鍵": "玄関に鍵があります。", "鍵はどこですか": "玄関に鍵があります。", "私の鍵の場所": "玄関に鍵があります。",
		"アンの好きな飲み物は何": "アンは緑茶が好きです。", "緑茶": "アンは緑茶が好きです。", "アン 緑茶": "アンは緑茶が好きです。",
		"ｺｰﾋｰを飲むのは誰": "ベンはコーヒーが大好き。", "妹の誕生日はいつ？": "妹の誕生日は三月五日です。", "起きる": "毎朝七時に起きる。",
		"我的手机在哪里": "你的手机在厨房里。", "你知道我的手机在哪里吗": "你的手机在厨房里。", "手机": "你的手机在厨房里。",
		"安娜喜欢什么": "安娜喜欢绿茶。", "妈妈什么时候过生日": "妈妈的生日是五月三号。", "几点起床": "他每天早上七点起床。",
		"GREEN tea": "Ann likes green tea.", "green 緑茶": "", "財布はどこ": "", "今天天气怎么样": "", "What about green tea": "",
		"วันเกิดแม่": "วันเกิดของแม่คือวันที่ห้า",
	} {
		if got := query(t, m, agent.Query{Text: asked}, noon); got != want {
			t.Errorf("%s: %q; want %q", asked, got, want)
		}
	}
	if found := query(t, m, agent.Query{Text: "茶は好き？", N: 1, Type: agent.MemoryProject}, noon); found != "" {
		t.Errorf("of another type: %s", found)
	}
	if found := query(t, m, agent.Query{Text: "アンの大好きな緑茶", N: 1}, noon); found != "アンは緑茶が好きです。" {
		t.Errorf("the one with the most parts: %s", found)
	}
	if found := must.Value(m.Query(agent.Query{Text: "好きな茶", N: 1}, noon))(t); len(found) != 1 {
		t.Errorf("one of the best: %+v", found)
	}
}

// query returns the bodies of the entries that q selects, in their order.
func query(t *testing.T, m *agent.Memory, q agent.Query, now time.Time) string {
	t.Helper()
	var bodies []string
	for _, e := range must.Value(m.Query(q, now))(t) {
		bodies = append(bodies, e.Body)
	}
	return strings.Join(bodies, ", ")
}
