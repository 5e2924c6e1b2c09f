package playback

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/transport"
	"perch/must"
	"perch/voice"
)

// channel is the transport and the tap of a robot. It counts the tts start messages to the robot.
type channel struct {
	transport.Transport
	starts atomic.Int32
}

func (c *channel) SendText(text []byte) error {
	m, err := xiaozhi.ParseToRobot(text)
	if m == (xiaozhi.TTSStart{}) {
		c.starts.Add(1)
	}
	return err
}

func (*channel) SendAudio(xiaozhi.Audio) error { return nil }
func (*channel) Audible() <-chan struct{}      { return nil }

func (*channel) ToRobot([]byte) {}
func (*channel) PacketToRobot() {}

// TestRestartSpeech checks that tts start is sent again only while speech is under way. Otherwise no tts
// stop would follow, and the robot would stay in its speaking state.
func TestRestartSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &channel{}
		p, err := New(c, "s", device.Robot{}, c, NewScheduler(), &voice.Loudness{})
		must.Succeed(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		again := func(want int) {
			t.Helper()
			c.starts.Store(0)
			if !p.RestartSpeech() {
				t.Error("it does not read")
			}
			time.Sleep(time.Second)
			if int(c.starts.Load()) != want {
				t.Errorf("sent %d times, want %d", c.starts.Load(), want)
			}
		}
		speech := p.StartSpeech()
		again(0)
		must.Succeed(t, speech.Sentence(ctx, "It is late."))
		time.Sleep(time.Second)
		again(1)
		must.Succeed(t, speech.Finish(ctx))
		time.Sleep(time.Second)
		again(0)
		must.Succeed(t, p.StartSpeech().Sentence(ctx, "Good night."))
		time.Sleep(time.Second)
		p.RestartSpeech()
		p.Cancel(time.Now())
		c.starts.Store(0)
		time.Sleep(time.Second)
		if c.starts.Load() != 0 {
			t.Error("speech that was cancelled starts again")
		}
		cancel()
		<-ended
	})
}
