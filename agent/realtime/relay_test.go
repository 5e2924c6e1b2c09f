package realtime

import (
	"testing"
	"testing/synctest"
)

// TestRelayIsBounded: of a server that never ends, at most ahead bytes wait, and a transcript overtakes the sound.
func TestRelayIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		in, out, over := make(chan received), make(chan serverEvent), make(chan struct{})
		go relay(in, out, over)
		taken := 0
		go func() {
			defer close(in)
			sound := received{serverEvent{Type: "response.output_audio.delta"}, size}
			in <- sound
			in <- received{serverEvent{Type: "conversation.item.input_audio_transcription.completed"}, 0}
			for taken = 1; ; taken++ {
				select {
				case in <- sound:
				case <-over:
					return
				}
			}
		}()
		synctest.Wait()
		if taken*size != ahead {
			t.Errorf("%d MB wait", taken*size>>20)
		}
		for _, want := range []string{"conversation.item.input_audio_transcription.completed", "response.output_audio.delta"} {
			if e := <-out; e.Type != want {
				t.Errorf("%s before %s", e.Type, want)
			}
		}
		synctest.Wait()
		if taken*size != ahead+size {
			t.Errorf("%d MB were taken after the first was played", taken*size>>20)
		}
		close(over)
	})
}
