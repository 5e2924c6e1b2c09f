package sphinx

// The loss above which a sentence is rejected. Measured with flite's voices
// (figures_test.go), anything from 28 to 40 gives the same figures.
const (
	mostLoss = 36
	// mostAnswerLoss is the same for answers, which are short, and a short word loses
	// little against another. From 20 to 36 as many of yes are understood and more of
	// no, but from 23 on hiss counts as one of those, and more single words that
	// rhyme with a yes count as a yes (answers_test.go).
	mostAnswerLoss = 22
	// worstWeight is the weight of a frame of the worst stretch relative to the mean:
	// a word that was not said in an otherwise good sentence.
	worstWeight = 1.0 / 60
)

// silence is the library's word for silence.
const silence = "<sil>"

// loss returns how much worse the words of a sentence fit the sound than mere phones do:
// the average per frame of speech, plus the loss of the worst stretch. Only acoustic
// scores count, so that it does not depend on the size of the grammar.
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

// byFrame returns every span's score spread over its frames, and the number of frames
// that are not silence.
func byFrame(spans []span) (scores []float64, speech int) {
	for _, s := range spans {
		n := s.last - s.first + 1
		// A rule's end has no frames; the library lists it as a word.
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
