package sphinx

// Parameters of the loss. A sentence is rejected if its loss is greater than its maximum, maxLoss or
// maxAnswerLoss.
const (
	// maxLoss is the maximum loss of a command. In measurements with flite's voices, values from
	// 28 to 40 gave the same results.
	maxLoss = 36
	// maxAnswerLoss is the maximum loss of an answer. It is lower than maxLoss, because answers are
	// short, and the loss is small if one short word is mistaken for another. In the measurements of
	// answers_test.go, "yes" is recognized equally often with all values from 20 to 36, and "no" more
	// often the greater the value is. But from 23 on, hiss is recognized as "no", and more words that
	// rhyme with "yes" are recognized as "yes".
	maxAnswerLoss = 22
	// worstWeight is the weight of the loss of the worst part of a sentence. It serves to
	// reject sentences that fit well except for one word.
	worstWeight = 1.0 / 60
)

// silence is the library's word for silence.
const silence = "<sil>"

// loss returns how much worse the words of a sentence fit a sound than the best sequence of phones
// (speech sounds in any order) does. The loss of a frame is the difference of the two scores. The
// result is the sum over all frames divided by the number of frames of speech, plus the weighted sum
// over the worst part, which is the run of frames with the greatest sum. Only acoustic scores are
// used, so the result does not depend on the size of the grammar.
//
// The worst part detects utterances that only begin like a sentence of the grammar: in "what
// do you think about football" three words fit, and the other words are matched to silence.
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
		// The library returns the end of a rule as the word (NULL), which has no sound.
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
