package sherpa

import "perch/voice"

// maxPiece is the maximum length of a sound for Moonshine, in samples. For more than 9.2 seconds, models of version 2 return
// no text: https://github.com/k2-fsa/sherpa-onnx/issues/3975
const maxPiece = 8 * voice.MicRate

// split splits sound into pieces of at most maxPiece samples. It splits at the quietest moment in the second half of a
// piece, where it is least likely to cut a word.
func split(pcm []int16) (pieces [][]int16) {
	for len(pcm) > maxPiece {
		at := quietest(pcm[maxPiece/2:maxPiece]) + maxPiece/2
		pieces = append(pieces, pcm[:at])
		pcm = pcm[at:]
	}
	if len(pcm) > 0 {
		pieces = append(pieces, pcm)
	}
	return pieces
}

// quietest returns the index of the middle of the quietest tenth of a second.
func quietest(pcm []int16) (at int) {
	const window = voice.MicRate / 10
	least := -1
	for start := 0; start+window <= len(pcm); start += window / 4 {
		sum := 0
		for _, s := range pcm[start : start+window] {
			sum += max(int(s), -int(s))
		}
		if least < 0 || sum < least {
			least, at = sum, start+window/2
		}
	}
	return at
}
