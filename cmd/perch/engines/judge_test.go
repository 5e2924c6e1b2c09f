package engines

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/event"
	"perch/gateway/wyoming"
	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
	wire "perch/voice/wyoming"
)

// judgingEngine is a recognizer that recognizes an utterance when it is finished, and a judge of its end.
type judgingEngine struct {
	scripted
	probability float64
	judgeErr    error
	judged      int
}

func (j *judgingEngine) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	return j.scripted.Recognize(ctx, u, o)
}

func (j *judgingEngine) JudgeEnd(ctx context.Context, _ *voice.Utterance) (float64, error) {
	j.judged++
	return j.probability, errors.Join(j.judgeErr, ctx.Err())
}

// TestPausesAreJudgedByTheFirstEngineThatCan checks who judges the pause of an utterance, and that it is recognized whatever the
// judges answer.
func TestPausesAreJudgedByTheFirstEngineThatCan(t *testing.T) {
	none := errors.New("it does not tell when a person has finished")
	for name, c := range map[string]struct {
		o       voice.Options
		answers []error // of the judges
		resting bool    // whether the first one has failed lately
		want    float64 // the probability; 0 if unknown
		judged  [2]int
	}{
		"the first":            {answers: []error{nil, nil}, want: 0.7, judged: [2]int{1, 0}},
		"the first cannot":     {answers: []error{none, nil}, want: 0.7, judged: [2]int{1, 1}},
		"nobody can":           {answers: []error{none, none}, judged: [2]int{1, 1}},
		"the first has failed": {answers: []error{nil, nil}, resting: true, want: 0.7, judged: [2]int{0, 1}},
		"a stranger":           {o: voice.Options{Stranger: true}, answers: []error{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Set{publish: func(event.Event) {}}
				var all []*judgingEngine
				for _, err := range c.answers {
					j := &judgingEngine{probability: 0.7, judgeErr: err}
					all = append(all, j)
					n := e.add("recognizer", "scripted", "", slog.New(slog.DiscardHandler))
					n.Recognizer = j
					e.Recognizers = append(e.Recognizers, j)
				}
				if c.resting {
					e.All[0].RecordUse(time.Now(), voice.ErrUnavailable)
				}
				u := voice.NewUtterance()
				u.Write(make([]int16, voice.MicRate))
				recognized := make(chan voice.Transcript, 1)
				go func() { recognized <- must.Value(e.Hearing().Recognize(t.Context(), u, c.o))(t) }()
				u.SetPaused(true)
				time.Sleep(time.Second)
				if got := u.EndProbability(); got != c.want && (c.want > 0 || got == got) {
					t.Errorf("the probability is %v, want %v", got, c.want)
				}
				u.Finish()
				if got := <-recognized; got.Text != "words" {
					t.Errorf("recognized as %q", got.Text)
				}
				if judged := [2]int{all[0].judged, all[1].judged}; judged != c.judged {
					t.Errorf("judged %v times, want %v", judged, c.judged)
				}
			})
		})
	}
}

// fixedJudge is a judge and a synthesizer of a server.
type fixedJudge struct{ scripted }

func (*fixedJudge) JudgeEnd(ctx context.Context, u *voice.Utterance) (float64, error) {
	return 0.25, u.Wait(ctx)
}

// TestAServerThatOnlySpeaksCanJudge checks that a Wyoming server that is only configured as a synthesizer judges for another
// recognizer.
func TestAServerThatOnlySpeaksCanJudge(t *testing.T) {
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	log := slog.New(slog.DiscardHandler)
	server := must.Value(wyoming.New(wyoming.Options{Listen: l, Synthesizer: &fixedJudge{}, Judge: &fixedJudge{}, Log: log, Name: "perch-speech",
		Hold: func() func() { return func() {} }}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	c := config.Default()
	c.Speech.Synthesizers = []config.Engine{{Kind: "wyoming", Options: &wire.SynthesizerKeys{URL: "tcp://" + l.Addr().String()}}}
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, log))(t)
	t.Cleanup(e.Close)
	if got, err := (judges{e.All}).JudgeEnd(t.Context(), voicetest.Utterance(make([]int16, voice.MicRate))); got != 0.25 || err != nil {
		t.Errorf("the probability is %v (%v)", got, err)
	}
	cancel()
	must.Succeed(t, <-served)
}
