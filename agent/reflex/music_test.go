package reflex_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"perch/agent"
	"perch/agent/reflex"
	"perch/must"
)

// jukebox is the owner's music. It records what it plays.
type jukebox struct {
	played []string
	fails  error
}

func (*jukebox) Names() []string { return []string{"Jazz", "Radio 4"} }

func (j *jukebox) Play(_ context.Context, name string) error {
	j.played = append(j.played, name)
	return j.fails
}

func (j *jukebox) Stop(context.Context) error {
	j.played = append(j.played, "off")
	return j.fails
}

// TestMusicInEachLanguage checks sentences that play the named music, the first, and nothing.
func TestMusicInEachLanguage(t *testing.T) {
	for tag, of := range map[string]struct{ jazz, radio4, first, stop []string }{
		"en": {[]string{"play jazz", "play me jazz", "Turn on the jazz, please."}, []string{"Play Radio 4.", "listen to radio 4"},
			[]string{"play some music", "play the radio", "turn the radio on"}, []string{"Stop the music!", "turn off the radio", "turn off jazz", "stop the jazz"}},
		"de": {[]string{"Spiel Jazz.", "Mach mal Jazz an"}, []string{"Spiel bitte Radio 4 ab"}, []string{"Spiel Musik", "Mach das Radio an", "Radio an"},
			[]string{"Mach die Musik aus!", "Stopp das Radio", "Radio aus", "Schalte den Jazz ab", "mach Jazz aus"}},
		"es":      {[]string{"Pon jazz", "reproduce jazz por favor"}, []string{"Pon Radio 4"}, []string{"Pon la radio", "Pon un poco de música"}, []string{"Para la música", "Apaga la radio", "quita el jazz"}},
		"fr":      {[]string{"Mets jazz", "Joue le jazz s'il te plaît"}, []string{"Mets Radio 4"}, []string{"Mets la radio", "Mets de la musique"}, []string{"Arrête la musique", "Éteins la radio", "coupe le jazz"}},
		"ja":      {[]string{"Jazzをかけて", "jazzを流してください"}, []string{"Radio 4をかけて"}, []string{"音楽をかけて", "ラジオをつけて"}, []string{"音楽を止めて", "ラジオを消してください", "jazzを止めて"}},
		"zh-Hans": {[]string{"播放jazz", "请播放Jazz吧"}, []string{"打开Radio 4"}, []string{"播放音乐", "打开收音机"}, []string{"停止音乐", "关掉收音机", "关掉jazz"}},
	} {
		with, without := must.Value(reflex.Load(tag, ""))(t), must.Value(reflex.Load(tag, ""))(t)
		with.AddMusic((*jukebox)(nil).Names())
		without.AddMusic(nil)
		brain, bare := newBrainOf(with), newBrainOf(without)
		for want, texts := range map[string][]string{"Jazz": slices.Concat(of.jazz, of.first), "Radio 4": of.radio4, "off": of.stop} {
			for _, text := range texts {
				j := &jukebox{}
				a := think(t, brain, agent.Turn{Robot: "a0b1c2d3e4f5", Session: "s", Text: text, Music: j})
				if !slices.Equal(j.played, []string{want}) || a.said == "" || a.end != agent.Continue {
					t.Errorf("%s: %s plays %v and says %q (%s)", tag, text, j.played, a.said, a.end)
				}
				j = &jukebox{fails: errors.New("404")}
				if a := think(t, brain, agent.Turn{Robot: "a0b1c2d3e4f5", Text: text, Music: j}); a.said == "" || a.said == with.Phrase("unknown") {
					t.Errorf("%s: %s that fails says %q", tag, text, a.said)
				}
				think(t, bare, agent.Turn{Robot: "a0b1c2d3e4f5", Text: text})
				if got := without.Recognized(text); got != "" && want != "off" {
					t.Errorf("%s: without music, %s is recognized as %s", tag, text, got)
				}
			}
		}
	}
}

// newBrainOf returns a brain with a book.
func newBrainOf(b *reflex.Book) *reflex.Brain {
	return reflex.New([]*reflex.Book{b}, "Chan", newMemory(), nil, nil)
}

// TestMusicIsForTheOwnersRobots checks that a turn without music, such as a stranger's, plays none, and that a book
// without music has the same grammar as ever.
func TestMusicIsForTheOwnersRobots(t *testing.T) {
	b := must.Value(reflex.Load("en", ""))(t)
	before := len(b.Rules())
	b.AddMusic([]string{"jazz", "Radio 4", "!"})
	if a := think(t, newBrainOf(b), agent.Turn{Text: "play jazz", Untrusted: true}); a.said != "I have nothing to do that with." {
		t.Errorf("it says %q", a.said)
	}
	added := 0
	for _, r := range b.Rules() {
		if r.Optional {
			added++
		}
	}
	if added == 0 || len(b.Rules()) != before+added {
		t.Errorf("%d rules became %d, %d of them optional", before, len(b.Rules()), added)
	}
}
