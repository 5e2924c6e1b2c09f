package sphinx

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"perch/voice"
)

// Options of the library: for both decoders, for the decoder of commands, and for the decoder of
// phones.
//
// By default the library computes only the scores that a search needs, relative to the best
// of them. The scores of two decoders are comparable only if the library computes all scores
// (-compallsen). That takes longer, so the library uses two Gaussians instead of four (-topn). The
// beams for commands are wide; otherwise a word with a weak beginning, such as "who", would
// be dropped too early. The beams for phones are narrow, because the search for phones takes
// the most time, and only its score is used.
var (
	bothArgs    = []string{"-bestpath", "no", "-compallsen", "yes", "-topn", "2"}
	commandArgs = []string{"-beam", "1e-60", "-pbeam", "1e-60", "-wbeam", "1e-60", "-lpbeam", "1e-60", "-lponlybeam", "1e-60"}
	phoneArgs   = []string{"-beam", "1e-20", "-pbeam", "1e-20", "-wbeam", "1e-20"}
)

// priorFrames is the weight of the model's mean when the mean of an utterance is computed
// from its first second. It corresponds to half a second.
const priorFrames = 50

// block is the number of samples decoded between two checks of the context.
const block = voice.MicFrame * 2

// Names of the two grammars of the decoder of commands. A separate decoder for answers would
// need another copy of the acoustic model.
const (
	commandGrammar = "commands"
	answerGrammar  = "answers"
)

// pair is a pair of decoders for the same sound. It is not safe for concurrent use.
type pair struct {
	commands, phones *decoder
	hasAnswers       bool // whether commands has the grammar answerGrammar
	prior            mean // the model's mean, for a typical microphone
}

// result is the result of decoding an utterance.
type result struct {
	text    string  // the sentence that fits best, or ""
	loss    float64 // loss of the sentence
	maxLoss float64 // with a greater loss, the sentence is refused
}

// newPair returns a pair for a grammar, without the grammar's faulty optional rules.
func newPair(model string, g Grammar, log *slog.Logger) (*pair, error) {
	g, words, faults, err := removeFaulty(g, model)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		log.Warn("the recognizer does not listen for a sentence", "err", fault)
	}
	acoustics := filepath.Join(model, "en-us")
	commands, err := newDecoder(acoustics, commandArgs, words, commandGrammar, g.jsgf(g.Top))
	if err != nil {
		return nil, err
	}
	if len(g.Answer) > 0 {
		if err := commands.setGrammar(answerGrammar, g.jsgf(g.Answer)); err != nil {
			commands.close()
			return nil, err
		}
	}
	grammar, words := phoneLoop()
	phones, err := newDecoder(acoustics, phoneArgs, words, "phones", grammar)
	if err != nil {
		commands.close()
		return nil, err
	}
	return &pair{commands, phones, len(g.Answer) > 0, commands.mean()}, nil
}

// recognize decodes u while the person is speaking, as a command or as the answer to a question.
// p can be used for another utterance afterwards, even if recognize fails.
func (p *pair) recognize(ctx context.Context, u *voice.Utterance, answer bool) (result, error) {
	name, limit := commandGrammar, float64(maxLoss)
	if answer && p.hasAnswers {
		name, limit = answerGrammar, maxAnswerLoss
	}
	if err := p.commands.use(name); err != nil {
		return result{}, err
	}
	buf := make([]int16, voice.MicRate)
	n, err := readFull(ctx, u, buf)
	if err != nil {
		return result{}, err
	}
	if err := p.adapt(buf[:n]); err != nil {
		return result{}, err
	}
	err = errors.Join(p.commands.start(), p.phones.start())
	if err == nil {
		err = p.feed(ctx, u, buf[:block], limit)
	}
	if err := errors.Join(err, p.commands.stop(), p.phones.stop()); err != nil {
		return result{}, err
	}
	return p.best(limit), nil
}

// best returns the result so far. limit is the maximum loss of the result.
func (p *pair) best(limit float64) result {
	text := p.commands.result()
	if text == "" {
		return result{}
	}
	return result{text, loss(p.commands.spans(), p.phones.spans()), limit}
}

// isRefused reports whether no sentence fits.
func (r result) isRefused() bool { return r.text == "" || r.loss > r.maxLoss }

// readFull reads u from its beginning until buf is full or u is finished, and returns the
// number of samples.
func readFull(ctx context.Context, u *voice.Utterance, buf []int16) (int, error) {
	for n := 0; ; {
		read, err := u.Read(ctx, buf[n:], n)
		n += read
		if err != nil || read == 0 || n == len(buf) {
			return n, err
		}
	}
}

// adapt computes, from the first second of an utterance, the mean that both decoders subtract
// from its cepstra (cepstral mean normalization). By default the library would use the mean of
// the previous utterance, which may be from another robot in another room.
func (p *pair) adapt(first []int16) error {
	p.commands.setMean(p.prior, priorFrames)
	err := p.commands.start()
	if err == nil {
		err = p.commands.skim(first)
	}
	err = errors.Join(err, p.commands.stop())
	m := p.commands.mean()
	p.commands.setMean(m, priorFrames)
	p.phones.setMean(m, priorFrames)
	return err
}

// feed decodes u until u is finished, in blocks of at most the length of buf. After each block it
// passes the text so far to u.SetPartial, or "" if the text has just changed or is refused.
func (p *pair) feed(ctx context.Context, u *voice.Utterance, buf []int16, limit float64) error {
	before := ""
	for offset := 0; ; {
		n, err := u.Read(ctx, buf, offset)
		if err != nil || n == 0 {
			return err
		}
		offset += n
		if err := errors.Join(p.commands.feed(buf[:n]), p.phones.feed(buf[:n])); err != nil {
			return err
		}
		text := p.commands.result()
		if text != before || text != "" && p.best(limit).isRefused() {
			u.SetPartial("", offset)
		} else {
			u.SetPartial(text, offset)
		}
		before = text
	}
}

// close frees the memory of both decoders.
func (p *pair) close() {
	p.commands.close()
	p.phones.close()
}
