package sphinx

// Where loss draws the line between a command and something else. Measured over
// flite's voices (figures_test.go), anything from 28 to 40 holds both figures.
const (
	mostLoss = 36
	// mostAnswerLoss is the same for answers, which are short, and a short word
	// loses little against another one. From 20 to 36 as many of yes are
	// understood and more of no, but hiss is taken for one of those from 23 on,
	// and more single words that rhyme with a yes for a yes (answers_test.go).
	mostAnswerLoss = 22
	// worstWeight is what a frame of the worst stretch counts beside one of
	// the mean: a word that was not said in an otherwise good sentence.
	worstWeight = 1.0 / 60
)

// silence is the library's word for it.
const silence = "<sil>"

// loss says how much worse the words of a sentence fit the sound than mere
// phones do: by frame of speech on the average, plus what the worst stretch
// loses. Only acoustic scores count, so that it does not depend on how large
// the grammar is.
//
// The worst stretch shows a near miss: in "what do you think about
// football" three words fit, and silence has to stand for the rest.
func loss(words, phones []span) float64 {
	scores, speech := byFrame(words)
	free, _ := byFrame(phones)
	var total, stretch, worst float64
	for i := range min(len(scores), len(free)) {
		lost := free[i] - scores[i]
		total += lost
		stretch = max(0, stretch+lost)
		worst = max(worst, stretch)
	}
	return total/float64(max(speech, 1)) + worst*worstWeight
}

// byFrame spreads every span's score over its frames, and counts the frames
// that are not silence.
func byFrame(spans []span) (scores []float64, speech int) {
	for _, s := range spans {
		n := s.last - s.first + 1
		// A rule's end takes no time; the library lists it as a word.
		if s.word == "(NULL)" || n <= 0 {
			continue
		}
		for range n {
			scores = append(scores, float64(s.score)/float64(n))
		}
		if s.word != silence {
			speech += n
		}
	}
	return scores, speech
}
