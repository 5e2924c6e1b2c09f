package sphinx

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// Limits for the recognition of answers, as fractions. A "yes" that was not said is the worst error,
// because it gives permission.
const (
	leastYes, leastNo = 0.90, 0.75 // minimum of yes answers and of no answers that are recognized
	mostTurned        = 0.0        // maximum of answers that are recognized as their opposite
	mostTalkYes       = 0.0        // maximum of other sentences that are recognized as "yes"
	mostTalkNo        = 0.03       // maximum of other sentences that are recognized as "no"
	mostWordYes       = 0.10       // maximum of single words, most of which rhyme with "yes", that are recognized as "yes"
)

// Answers of people. The grammar contains all of them.
var (
	yeses = []string{
		"yes", "yes please", "yeah", "yep", "okay", "sure", "go ahead", "allow it", "of course", "yes do it", "okay go ahead",
		"certainly", "absolutely", "yes you may",
	}
	noes = []string{
		"no", "no thanks", "no thank you", "nope", "don't", "don't do it", "do not do it", "please don't", "stop", "stop it", "no stop",
		"never mind", "never", "not now", "cancel", "cancel that", "no way", "wait", "of course not", "i'm not sure", "you may not",
	}
)

// talk are sentences that are not answers. The grammar has one of them.
var talk = []string{
	"yesterday evening", "another one", "maybe later", "let me think", "good morning", "what time is it", "ask my sister",
	"the television is on", "come to dinner", "where are my keys", "is it raining", "turn it off", "the yes men",
	"they said no to me yesterday", "she said yes to him", "set the volume to forty percent", "look to the left", "tell me a joke",
	"what can you do", "the weather will be nice tomorrow", "my brother works in a bank", "can you read me a book", "open the window",
	"who is at the door", "i would like a cup of coffee", "did you feed the cat", "yes or no", "how are you today",
	"turn the lights blue", "what do you want to do", "say it again please", "which file is that", "how much does it cost",
}

// singles are words that sound like an answer, or are as short. The grammar has half
// of them as words that are not answers.
var singles = []string{
	"maybe", "guess", "less", "now", "go", "oh", "what", "why", "who", "please", "thank you", "help", "hello", "today", "should",
	"door", "do it", "number", "nothing", "ten",
	"chess", "jess", "shore", "shirt", "shoe", "obey", "snow", "nose", "banana", "yellow", "stock", "desk", "horse", "court", "cloud",
	"duet", "joke", "juice", "goat", "away",
}

// means returns the meaning of a recognized text: "yes", "no" or "".
func means(text string) string {
	words := strings.Fields(text)
	hasAny := func(some ...string) bool {
		return slices.ContainsFunc(some, func(w string) bool { return slices.Contains(words, w) })
	}
	if text == "" || slices.Contains(alternatives(homeGrammar, "neither"), text) {
		return ""
	}
	if hasAny("no", "nope", "don't", "not", "stop", "cancel", "never", "wait", "can't") {
		return "no"
	}
	return "yes"
}

func alternatives(g Grammar, rule string) []string {
	i := slices.IndexFunc(g.Rules, func(r Rule) bool { return r.Name == rule })
	return strings.Split(g.Rules[i].Body, " | ")
}

// answered counts how utterances of one kind were recognized.
type answered struct{ all, yes, no int }

// TestSpokenAnswers checks how often answers and other phrases are recognized, in voices of flite and
// espeak-ng. One of the voices has an accent that the model does not know.
func TestSpokenAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("recognition takes minutes, in make test-all")
	}
	e := New(Options{Grammar: homeGrammar})
	defer e.Close()
	names := []string{"slt", "rms", "awb", "espeak:en-us", "espeak:en-us+f3", "espeak:en-gb"}
	all := map[string]answered{}
	var mu sync.Mutex
	var wg sync.WaitGroup // the engine decodes two utterances at the same time
	for i, name := range names {
		wg.Go(func() {
			got := map[string]answered{}
			for kind, texts := range map[string][]string{"yes": yeses, "no": noes, "talk": half(talk, i), "single": half(singles, i)} {
				got[kind] = answerAll(t, e, name, kind, texts)
			}
			mu.Lock()
			defer mu.Unlock()
			for kind, a := range got {
				sum := all[kind]
				all[kind] = answered{sum.all + a.all, sum.yes + a.yes, sum.no + a.no}
			}
			t.Logf("%s: %d of %d yes and %d of %d no were understood, %d and %d the other way round; of %d other sentences %d were a yes and %d a no; of %d single words %d and %d",
				name, got["yes"].yes, got["yes"].all, got["no"].no, got["no"].all, got["yes"].no, got["no"].yes,
				got["talk"].all, got["talk"].yes, got["talk"].no, got["single"].all, got["single"].yes, got["single"].no)
		})
	}
	wg.Wait()
	judgeAnswers(t, all)
}

// half returns every other phrase, so that each phrase is spoken by half of the voices.
func half(all []string, skip int) (some []string) {
	for i, s := range all {
		if i%2 != skip%2 {
			some = append(some, s)
		}
	}
	return some
}

func answerAll(t *testing.T, e *Engine, voiceName, kind string, texts []string) answered {
	got := answered{all: len(texts)}
	for _, text := range texts {
		heard, err := e.Recognize(t.Context(), voicetest.Utterance(speak(t, voiceName, text)), voice.Options{YesNo: true, Patient: true})
		if err != nil {
			t.Error(err)
			return got
		}
		meant := means(heard.Text)
		switch meant {
		case "yes":
			got.yes++
		case "no":
			got.no++
		}
		if kind == "talk" || kind == "single" {
			kind = ""
		}
		if meant != kind {
			t.Logf("%s: %q was taken for %q", voiceName, text, heard.Text)
		}
	}
	return got
}

func judgeAnswers(t *testing.T, all map[string]answered) {
	share := func(n int, kind string) float64 { return float64(n) / float64(all[kind].all) }
	yes, no := share(all["yes"].yes, "yes"), share(all["no"].no, "no")
	t.Logf("answers, all voices: %.1f %% of %d yes and %.1f %% of %d no were understood, %d and %d the other way round",
		100*yes, all["yes"].all, 100*no, all["no"].all, all["yes"].no, all["no"].yes)
	t.Logf("answers, all voices: %.1f %% of %d other sentences were taken for a yes and %.1f %% for a no; of %d single words %.1f %% and %.1f %%",
		100*share(all["talk"].yes, "talk"), all["talk"].all, 100*share(all["talk"].no, "talk"),
		all["single"].all, 100*share(all["single"].yes, "single"), 100*share(all["single"].no, "single"))
	if yes < leastYes || no < leastNo {
		t.Errorf("want at least %.0f %% of yes and %.0f %% of no understood", 100*leastYes, 100*leastNo)
	}
	if turned := max(share(all["yes"].no, "yes"), share(all["no"].yes, "no")); turned > mostTurned {
		t.Errorf("want at most %.0f %% of answers taken for their opposite", 100*mostTurned)
	}
	if share(all["talk"].yes, "talk") > mostTalkYes || share(all["talk"].no, "talk") > mostTalkNo {
		t.Errorf("want at most %.0f %% of other sentences taken for a yes and %.0f %% for a no", 100*mostTalkYes, 100*mostTalkNo)
	}
	if share(all["single"].yes, "single") > mostWordYes {
		t.Errorf("want at most %.0f %% of single words taken for a yes", 100*mostWordYes)
	}
}

// TestCommandsAndAnswersShareAPair checks that a pair can alternate between commands and answers, and
// that it recognizes a command with exactly the same scores as a pair without a grammar of answers.
func TestCommandsAndAnswersShareAPair(t *testing.T) {
	p, err := newPair(Model, homeGrammar, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	defer p.close()
	plain := homeGrammar
	plain.Answer = nil
	deaf, err := newPair(Model, plain, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	defer deaf.close()
	hear := func(p *pair, pcm []int16, answer bool) result {
		got, err := p.recognize(t.Context(), voicetest.Utterance(pcm), answer)
		must.Succeed(t, err)
		return got
	}
	for said, asAnswer := range map[string]string{
		"yes": "yes", "yes please": "yes please", "no": "no", "no thanks": "no thanks", "okay": "okay", "what time is it": "",
		"good night": "good night",
	} {
		pcm := speak(t, "slt", said)
		for range 2 {
			if got, want := hear(p, pcm, false), hear(deaf, pcm, false); got != want {
				t.Errorf("the command %q: %+v, but %+v without a grammar of answers", said, got, want)
			}
			if got := hear(p, pcm, true); got.text != asAnswer && !(asAnswer == "" && got.loss > got.maxLoss) {
				t.Errorf("the answer %q was taken for %+v", said, got)
			}
		}
	}
}

func TestAGrammarWithoutAnswers(t *testing.T) {
	e := newEngine(t, Options{Grammar: small})
	got, err := e.Recognize(t.Context(), voicetest.Utterance(speak(t, "slt", "good night")), voice.Options{YesNo: true})
	if err != nil || got.Text != "good night" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnswersCostLittle checks that the grammar of answers takes little memory, and that changing the
// grammar takes no time.
func TestAnswersCostLittle(t *testing.T) {
	without := homeGrammar
	without.Answer = nil // the decoder's dictionary still has the words of answers
	pcm := speak(t, "slt", "yes please")
	least := math.Inf(1) // the minimum of several measurements, because other memory of the process may grow, too
	for range 3 {
		p, err := newPair(Model, without, slog.New(slog.DiscardHandler))
		must.Succeed(t, err)
		defer p.close() // not earlier, because the next pair would reuse the memory
		hear := func(answer bool) {
			if _, err := p.recognize(t.Context(), voicetest.Utterance(pcm), answer); err != nil {
				t.Fatal(err)
			}
		}
		hear(false)
		before := residentMB(t)
		must.Succeed(t, p.commands.setGrammar(answerGrammar, homeGrammar.jsgf(homeGrammar.Answer)))
		p.hasAnswers = true
		hear(true)
		least = min(least, residentMB(t)-before)
		began := time.Now()
		for range 1000 {
			must.Succeed(t, p.commands.use(answerGrammar))
		}
		t.Logf("changing to the grammar of answers takes %v", time.Since(began)/1000)
	}
	if t.Logf("the grammar of answers takes %.1f MB", least); least > 2 {
		t.Errorf("the grammar of answers takes %.1f MB, want at most 2", least)
	}
}
