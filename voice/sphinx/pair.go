package sphinx

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"perch/voice"
)

// Options of the library, for both decoders and for each.
//
// The library computes only the scores that a search requests, relative to the best of
// those. Scores of two searches are comparable only if it computes all (-compallsen);
// two Gaussians instead of four (-topn) make up for the time. The grammar's beams are
// wide, or a word that begins with a weak sound ("who") is dropped before it can win;
// the phones' are narrow, since they are only a measure and would take most of the time.
var (
	bothArgs    = []string{"-bestpath", "no", "-compallsen", "yes", "-topn", "2"}
	commandArgs = []string{"-beam", "1e-60", "-pbeam", "1e-60", "-wbeam", "1e-60", "-lpbeam", "1e-60", "-lponlybeam", "1e-60"}
	phoneArgs   = []string{"-beam", "1e-20", "-pbeam", "1e-20", "-wbeam", "1e-20"}
)

// priorFrames is the weight of the model's mean relative to the mean of an utterance's first
// second: half a second.
const priorFrames = 50

// block is how much sound is decoded between two checks of the context.
const block = voice.MicFrame * 2

// The names of the grammars in the decoder of commands. A separate decoder for answers
// would load the acoustic model once more.
const (
	commandGrammar = "commands"
	answerGrammar  = "answers"
)

// pair is the two decoders that hear the same sound. It is not safe for concurrent use.
type pair struct {
	commands, phones *decoder
	answers          bool // commands has a grammar of answers
	prior            mean // the model's expected mean of a microphone
}

// heard is the result of an utterance: the best sentence, or "", its loss, and the
// highest loss that is accepted.
type heard struct {
	text       string
	loss, most float64
}

func newPair(model string, g Grammar, log *slog.Logger) (*pair, error) {
	g, words, left, err := usable(g, model)
	if err != nil {
		return nil, err
	}
	for _, why := range left {
		log.Warn("the recognizer does not listen for a sentence", "err", why)
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

// recognize decodes u while it is spoken, as a command or as the answer to a question. After
// any result p is ready for another utterance.
func (p *pair) recognize(ctx context.Context, u *voice.Utterance, answer bool) (heard, error) {
	name, most := commandGrammar, float64(mostLoss)
	if answer && p.answers {
		name, most = answerGrammar, mostAnswerLoss
	}
	if err := p.commands.use(name); err != nil {
		return heard{}, err
	}
	buf := make([]int16, voice.MicRate)
	n, err := fill(ctx, u, buf)
	if err != nil {
		return heard{}, err
	}
	if err := p.adapt(buf[:n]); err != nil {
		return heard{}, err
	}
	err = errors.Join(p.commands.start(), p.phones.start())
	if err == nil {
		err = p.feed(ctx, u, buf[:block], most)
	}
	if err := errors.Join(err, p.commands.stop(), p.phones.stop()); err != nil {
		return heard{}, err
	}
	return p.best(most), nil
}

// best returns the sentence that fits best so far.
func (p *pair) best(most float64) heard {
	text := p.commands.result()
	if text == "" {
		return heard{}
	}
	return heard{text, loss(p.commands.spans(), p.phones.spans()), most}
}

// refused reports whether no sentence fits.
func (h heard) refused() bool { return h.text == "" || h.loss > h.most }

// fill reads u into buf until buf is full or u is finished.
func fill(ctx context.Context, u *voice.Utterance, buf []int16) (int, error) {
	for n := 0; ; {
		more, err := u.Read(ctx, buf[n:], n)
		n += more
		if err != nil || more == 0 || n == len(buf) {
			return n, err
		}
	}
}

// adapt sets the mean that both decoders subtract from the spectrum (cepstral mean
// normalization), from an utterance's first second. The library would carry it over to
// the next utterance, which may come from another robot in another room.
func (p *pair) adapt(first []int16) error {
	p.commands.setMean(p.prior, priorFrames)
	err := p.commands.start()
	if err == nil {
		err = p.commands.skim(first)
	}
	err = errors.Join(err, p.commands.stop())
	at := p.commands.mean()
	p.commands.setMean(at, priorFrames)
	p.phones.setMean(at, priorFrames)
	return err
}

// feed feeds u to both decoders, block by block, to its end, and passes the text so
// far to u after each block.
func (p *pair) feed(ctx context.Context, u *voice.Utterance, buf []int16, most float64) error {
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
		if text != before || text != "" && p.best(most).refused() {
			u.Suppose("", offset)
		} else {
			u.Suppose(text, offset)
		}
		before = text
	}
}

func (p *pair) close() {
	p.commands.close()
	p.phones.close()
}
