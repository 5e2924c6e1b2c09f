package sphinx

// Parameters of the loss. Sentences with a greater loss are rejected.
const (
	// maxLoss is the maximum loss of a command. In measurements with flite's voices, values from
	// 28 to 40 gave the same results.
	maxLoss = 36
	// maxAnswerLoss is the maximum loss of an answer. Answers are short, and the loss of one
	// short word that is recognized as another is small. In the measurements of
	// answers_test.go, all values from 20 to 36 recognize "yes" equally often, and greater
	// values recognize "no" more often. But from 23 on, hiss is recognized as "no", and more
	// words that rhyme with "yes" are recognized as "yes".
	maxAnswerLoss = 22
	// worstWeight is the weight of the loss of the worst part of a sentence. It serves to
	// reject sentences that fit well except for one word.
	worstWeight = 1.0 / 60
)

// silence is the library's word for silence.
const silence = "<sil>"

// loss returns how much worse the words of a sentence fit a sound than phones fit it: the
// average loss per frame of speech, plus the weighted loss of the worst part. It uses only
// acoustic scores, so it does not depend on the size of the grammar.
//
// The worst part detects utterances that only begin like a sentence of the grammar: in "what
// do you think about football" three words fit, and the rest is matched to silence.
func loss(words, phones []span) float64 {
	scores, speech := frameScores(words)
	phoneScores, _ := frameScores(phones)
	var total, part, worst float64
	for i := range min(len(scores), len(phoneScores)) {
		frameLoss := phoneScores[i] - scores[i]
		total += frameLoss
		part = max(0, part+frameLoss)
		worst = max(worst, part)
	}
	return total/float64(max(speech, 1)) + worst*worstWeight
}

// frameScores returns the score of each frame, which is the average over its span, and the
// number of frames that are not silence.
func frameScores(spans []span) (scores []float64, speech int) {
	for _, s := range spans {
		n := s.last - s.first + 1
		// The library returns the end of a rule as a word without frames.
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
