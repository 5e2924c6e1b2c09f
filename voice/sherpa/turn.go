package sherpa

import (
	"context"
	"errors"
	"fmt"

	ort "github.com/yalue/onnxruntime_go"

	"perch/voice"
)

// Turn is the model Smart Turn v3, which tells from the sound of speech whether the person has finished. It is safe for
// concurrent use.
type Turn struct {
	free     slot
	features *features
	session  *ort.AdvancedSession
	in, out  *ort.Tensor[float32]
}

// library is the name of ONNX Runtime, which this process has loaded for sherpa-onnx already.
const library = "libonnxruntime.so"

// NewTurn loads the model from a file. threads is the number of CPU threads. Close frees the model. Only one goroutine may call
// NewTurn at a time.
func NewTurn(file string, threads int) (*Turn, error) {
	if !ort.IsInitialized() {
		ort.SetSharedLibraryPath(library)
		if err := ort.InitializeEnvironment(); err != nil {
			return nil, fmt.Errorf("start ONNX Runtime: %w", err)
		}
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("configure ONNX Runtime: %w", err)
	}
	t := &Turn{free: make(slot, 1), features: newFeatures()}
	t.in, err = ort.NewEmptyTensor[float32](ort.NewShape(1, melBands, melFrames))
	if err == nil {
		t.out, err = ort.NewEmptyTensor[float32](ort.NewShape(1, 1))
	}
	if err == nil {
		err = options.SetIntraOpNumThreads(threads)
	}
	if err == nil {
		t.session, err = ort.NewAdvancedSession(file, []string{"input_features"}, []string{"logits"}, []ort.Value{t.in}, []ort.Value{t.out}, options)
	}
	if err = errors.Join(err, options.Destroy()); err != nil {
		t.Close()
		return nil, fmt.Errorf("ONNX Runtime cannot load %s: %w", file, err)
	}
	return t, nil
}

// Close frees the model. No call may be running.
func (t *Turn) Close() {
	if t.session != nil {
		_ = t.session.Destroy() // frees memory, and cannot fail for a session that was made
	}
	for _, tensor := range []*ort.Tensor[float32]{t.in, t.out} {
		if tensor != nil {
			_ = tensor.Destroy() // likewise
		}
	}
}

// JudgeEnd implements voice.EndJudge. It waits until the utterance is finished. The model reads the last 8 s.
func (t *Turn) JudgeEnd(ctx context.Context, u *voice.Utterance) (probability float64, err error) {
	pcm, err := soundOf(ctx, u)
	if err != nil {
		return 0, err
	}
	release, err := t.free.acquire(ctx)
	defer release()
	if err != nil {
		return 0, err
	}
	t.features.compute(pcm, t.in.GetData())
	if err := t.session.Run(); err != nil {
		return 0, fmt.Errorf("run the model for the end of turns: %w", err)
	}
	return float64(t.out.GetData()[0]), nil // the model calls its output logits, but it has applied a sigmoid
}
